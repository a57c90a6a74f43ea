"""The first stage of every search: each query's nearest rows in one space of the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from eyespot.gallery.integrity import naming_damage
from eyespot.gallery.view import View
from eyespot.search.embedding import embed
from eyespot.types import Encoder, Index, Mask, NearestRows, Query, RankedImage, Run

K = 50  # answers that the recall of an index speaks of


@dataclass(frozen=True)
class Nearest:
    """The k best rows for each query among those that `mask` lets through."""

    view: View
    encoder: Encoder
    index: Index
    k: int
    mask: Mask

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run; whatever came before is not asked, for this is a first stage."""
        vectors = embed(queries, self.encoder)
        with naming_damage(self.view):
            found = self.index.search(vectors, self.k, self.mask)
        made = as_run(queries, found, self.view)
        tell_recall(made, found)
        return made


def tell_recall(run: Run, *made_of: NearestRows | Run) -> None:
    """Say in a run's header whether all it was made of is exact; if not, a note tells once what share it finds."""
    told = [one.header.get("recall") if isinstance(one, Run) else one.recall for one in made_of]
    recalls = [float(recall) for recall in told if recall is not None]
    run.header["exact"] = not recalls
    if recalls:
        recall = run.header["recall"] = nan if any(map(isnan, recalls)) else min(recalls)
        note = f"approximate: {'how much it finds was never measured' if isnan(recall) else _recall_text(recall)}"
        run.notes = [*(one for one in run.notes if one != note), note]


def _recall_text(recall: float) -> str:
    return f"found {100 * recall:.1f} % of the true {K} when measured"


def as_run(queries: Sequence[Query], found: NearestRows, view: View) -> Run:
    """Rows of a gallery as a run, with what is known of each."""
    rows = [row for ranking in found.rows.tolist() for row in ranking]
    facts = dict(zip(rows, view.facts(rows), strict=True))
    ranked = {
        query.id: [RankedImage(facts[row]["id"], float(score)) for row, score in zip(rows, scores, strict=True)]
        for query, rows, scores in zip(queries, found.rows.tolist(), found.scores, strict=True)
    }
    made = Run(ranked)
    made.facts = {fact["id"]: fact for fact in facts.values()}
    made.header = {"space": view.space.digest, "encoder": view.space.encoder}
    return made
