"""The first stage of every search: each query's nearest rows in one space of the gallery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.view import View
from eyespot.kernels.codes import NotFiniteVectors
from eyespot.search.embedding import KnownVectors, embed
from eyespot.storage.arrays import distinct
from eyespot.types import Encoder, IdColumn, Index, Mask, NearestRows, Query, Run

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable

K = 50  # answers that the recall of an index speaks of


@dataclass(frozen=True)
class Nearest:
    """The k best rows for each query among those that `mask` lets through."""

    view: View = field(repr=False)
    encoder: Encoder | KnownVectors
    index: Index = field(repr=False)
    k: int
    mask: Mask = field(repr=False)

    @classmethod
    def of(cls, collection: Searchable, k: int = 100, mask: Mask | None = None) -> Nearest:
        """The stage for a collection: over all its pictures if `mask` is None."""
        return cls(collection.view, collection.encoder, collection.index, k, collection.allowed(mask))

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run; a run that came before does not count, because this is a first stage."""
        vectors = embed(queries, self.encoder)
        with naming_damage(self.view):
            nearest = self.index.search(vectors, self.k, self.mask)
        made = as_run(queries, nearest, self.view)
        tell_recall(made, nearest)
        made.header["by"] = "look"
        return made


@contextmanager
def naming_damage(view: View) -> Iterator[None]:
    """`Damaged`, which names a shard and the way out, for `NotFiniteVectors`, which knows of neither."""
    try:
        yield
    except NotFiniteVectors:
        from eyespot.gallery.integrity import check_vectors  # which a search of sound vectors never needs

        for shard, block in zip(view.shards, view.blocks, strict=True):
            check_vectors(shard, view.stem, len(block), full=True)
        raise


def tell_recall(run: Run, *made_of: NearestRows | Run) -> None:
    """Say in a run's header whether all it was made of is exact; if not, a note tells once what share it finds."""
    shares = [source.header.get("recall") if isinstance(source, Run) else source.recall for source in made_of]
    recalls = [float(share) for share in shares if share is not None]
    run.header["exact"] = not recalls
    if recalls:
        recall = run.header["recall"] = nan if any(map(isnan, recalls)) else min(recalls)
        share = f"about {100 * recall:.1f} % of the nearest were found"
        note = f"approximate: {'how much it finds was never measured' if isnan(recall) else share}"
        run.notes = [*(text for text in run.notes if text != note), note]


def recall_of(header: Mapping[str, Any]) -> float | None:
    """What a run's header states as the share of the nearest that was found; None where all were, or nobody knows."""
    share = float(header.get("recall", nan))
    return None if isnan(share) else round(share, 4)


def as_run(queries: Sequence[Query], nearest: NearestRows | Sequence[NearestRows], view: View) -> Run:
    """Rows of a gallery as a run, with what is known of each; `nearest` of all queries, or one for each (k_i,)."""
    if isinstance(nearest, NearestRows):
        rows, scores = list(nearest.rows), list(nearest.scores)
    else:
        rows, scores = [one.rows for one in nearest], [one.scores for one in nearest]
    every: NDArray[np.int64] = np.concatenate([np.empty(0, np.int64), *rows])
    codes = np.searchsorted(found := distinct(every), every)  # (all rows,)
    facts = view.facts(found.tolist())
    if len(found):
        ids = IdColumn(np.array([*(fact["id"] for fact in facts), None], dtype=object)[:-1], codes)
        names = np.array([*(query.id for query in queries), None], dtype=object)[:-1]
        query_column = IdColumn(names, np.repeat(np.arange(len(queries)), [len(some) for some in rows]))
        made = Run.from_columns(query_column, ids, np.concatenate(scores))
    else:
        made = Run({query.id: [] for query in queries})
    made.facts = {fact["id"]: fact for fact in facts}
    made.header = {"space": view.space.digest, "encoder": view.space.encoder}
    return made
