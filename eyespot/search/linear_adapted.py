"""The index of static task adaptation (TA): one linear map for all queries and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.quari.forward import refuse_without_direction
from eyespot.gallery.view import View
from eyespot.kernels.rows import RowBlocks
from eyespot.types import Index, Mask, NearestRows, Vectors

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
