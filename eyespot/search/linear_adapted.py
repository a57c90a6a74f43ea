"""The stage of static task adaptation (TA): one linear map for all queries and pictures, to search or to re-rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.quari.forward import refuse_without_direction
from eyespot.gallery.view import View
from eyespot.kernels.rows import RowBlocks
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.nearest import as_run, naming_damage
from eyespot.types import Encoder, Index, Mask, NearestRows, Query, RankedImage, Run, Vectors

if TYPE_CHECKING:
    from eyespot.adapters.linear import Linear

IN_MEMORY = 1 << 28  # numbers (pictures x width); adapted vectors of a larger gallery are made anew for each search


class LinearIndex:
    """Exact search by plain queries, where queries and rows go through a linear adapter first.

    blocks: vectors (n_i, dim), numbered through all of them. Up to `IN_MEMORY` numbers their adapted form is computed
    once; beyond, a window of rows at a time, for every search again, so that memory does not grow with the gallery.
    """

    exact = True

    def __init__(self, adapter: Linear, blocks: Sequence[Vectors], in_memory: int = IN_MEMORY) -> None:
        self._adapter, self._rows = adapter, RowBlocks(list(blocks))
        self._window = max(1, in_memory // max(1, len(adapter.weight)))

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (queries, dim) among those the mask lets through.

        `UsageError` for a query that is zero or not finite: the map's bias would give it a direction.
        """
        refuse_without_direction(queries)
        adapted = self._adapter.apply(queries)  # (queries, width)
        if len(self._rows) <= self._window:
            return self._whole.search(adapted, k, mask)
        parts = []  # the k best of each window of rows, by their numbers in the gallery
        for start in range(0, len(self._rows), self._window):
            rows = np.arange(start, min(start + self._window, len(self._rows)))
            index: Index = rooms.load("indexes", "exact", [self._adapter.apply(self._rows.gather(rows))])
            found = index.search(adapted, k, None if mask is None else mask[rows])
            parts.append(NearestRows(found.rows + start, found.scores))
        every, scores = (np.concatenate([part[at] for part in parts], axis=1) for at in (0, 1))  # (queries, found)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # of equals the lower row
        return NearestRows(np.take_along_axis(every, order, 1), np.take_along_axis(scores, order, 1))

    def rescore(self, query: Vectors, rows: Sequence[int]) -> NDArray[np.float64]:
        """The scores of these rows for a plain query (dim,): (rows,)."""
        images = self._adapter.apply(self._rows.gather(np.asarray(rows, np.int64)))
        scores: NDArray[np.float64] = (images @ self._adapter.apply(query[None])[0]).astype(np.float64)
        return scores

    @cached_property
    def _whole(self) -> Index:
        blocks = [self._adapter.apply(block) for block in self._rows.blocks]
        whole: Index = rooms.load("indexes", "exact", blocks)
        return whole


_OPEN: WeakKeyDictionary[Linear, tuple[ref[View], LinearIndex]] = WeakKeyDictionary()


def index_of(view: View, adapter: Linear) -> LinearIndex:
    """The index of a view, the same for every search under one adapter: a server adapts its gallery once."""
    known = _OPEN.get(adapter)
    if known is None or known[0]() is not view:
        copy = replace(adapter)  # the key itself in its value would never be let go
        known = _OPEN[adapter] = (ref(view), LinearIndex(copy, view.blocks))
    return known[1]


@dataclass(frozen=True)
class LinearAdapted:
    """The k best rows for each query under a linear adapter; or, given a run, its first `depth` hits in that order."""

    view: View
    encoder: Encoder | KnownVectors
    adapter: Linear
    k: int
    mask: Mask
    depth: int | None = None

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run, or the given one re-ranked."""
        vectors, index = embed(queries, self.encoder), index_of(self.view, self.adapter)
        if run is not None:
            return reranked(self.view, run, queries, self.depth, lambda at, rows: index.rescore(vectors[at], rows))
        with naming_damage(self.view):
            found = index.search(vectors, self.k, self.mask)
        made = as_run(queries, found, self.view)
        made.header |= {"exact": True, "adapted": True}
        return made


def reranked(
    view: View, run: Run, queries: Sequence[Query], depth: int | None, rescore: Callable[[int, list[int]], Any]
) -> Run:
    """The run, the first `depth` hits of each query by `rescore` of its place and their rows, the rest as it was."""
    ranked: dict[str, list[RankedImage]] = {}
    for at, query in enumerate(queries):
        hits = run[query.id]
        scores = rescore(at, view.rows_of([hit.image for hit in hits[:depth]]))  # (n,)
        order = np.argsort(-scores, kind="stable").tolist()
        scored = [RankedImage(hits[place].image, float(scores[place])) for place in order]
        lowest, rest = scored[-1].score if scored else 0.0, hits[len(scored) :]
        ranked[query.id] = [*scored, *(RankedImage(hit.image, lowest - rank) for rank, hit in enumerate(rest, 1))]
    made = Run(ranked)
    made.facts, made.notes = run.facts, list(run.notes)
    made.header = run.header | {"adapted": True, "depth": depth}
    return made
