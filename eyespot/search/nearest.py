"""The first stage of every search: each query's nearest rows in one space of the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from eyespot.gallery.opened import View
from eyespot.search.embedding import embed
from eyespot.types import Encoder, Found, Hit, Index, Mask, Query, Run

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
        found = self.index.search(embed(queries, self.encoder), self.k, self.mask)
        made = as_run(queries, found, self.view)
        tell_recall(made, found)
        return made


def tell_recall(run: Run, *found: Found) -> None:
    """Say in a run's header whether what it was made of is exact; if not, a note tells what share it finds."""
    recalls = [one.recall for one in found if one.recall is not None]
    run.header["exact"] = not recalls
    if recalls:
        recall = run.header["recall"] = min(recalls)
        told = "how much it finds was never measured" if isnan(recall) else _found(recall)
        run.notes = [*run.notes, f"approximate: {told}"]


def _found(recall: float) -> str:
    return f"found {100 * recall:.1f} % of the true {K} when measured"


def as_run(queries: Sequence[Query], found: Found, view: View) -> Run:
    """Rows of a gallery as a run, with what is known of each."""
    rows = [row for ranking in found.rows.tolist() for row in ranking]
    facts = dict(zip(rows, view.facts(rows), strict=True))
    ranked = {
        query.id: [Hit(facts[row]["id"], float(score)) for row, score in zip(rows, scores, strict=True)]
        for query, rows, scores in zip(queries, found.rows.tolist(), found.scores, strict=True)
    }
    made = Run(ranked)
    made.facts = {fact["id"]: fact for fact in facts.values()}
    made.header = {"space": view.space.digest, "encoder": view.space.encoder}
    return made
