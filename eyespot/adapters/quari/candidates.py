"""Approximate search under adapted queries: candidates by inner product from any index, scored by the formula.

The numerator of the score is the product of the image with one vector, so an index of plain inner products proposes;
what it cannot know is the length of f(x), so enough candidates must be asked for: `recall` measures how many suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.kernels.rows import rank
from eyespot.types import AdaptedQuery, Index, Mask, NearestRows, UsageError


@dataclass(frozen=True)
class CandidatePool:
    """The k best of `pool` rows that an index finds by inner product; `scan` holds the same rows."""

    index: Index
    scan: AdaptedIndex
    pool: int
    exact = False

    def search(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> NearestRows:
        """The k best candidates for each query, best first; UsageError if that is more than the pool holds."""
        if k > self.pool:
            raise UsageError(f"{k} rows cannot be chosen from a pool of {self.pool}; make the pool larger")
        directions = np.array([Formula.of(view, self.scan.dim).direction for view in adapted], np.float32)
        pools = self.index.search(directions.reshape(-1, self.scan.dim), self.pool, mask).rows
        best = [rank(rows, self.scan.rescore(view, rows), k) for view, rows in zip(adapted, pools, strict=True)]
        width = min(k, pools.shape[1])
        rows = np.array([rows for rows, _ in best], np.int64).reshape(-1, width)
        return NearestRows(rows, np.array([scores for _, scores in best], np.float32).reshape(-1, width))

    def recall(self, adapted: Sequence[AdaptedQuery], k: int) -> float:
        """The share of the true k best that this search finds, over these queries; it costs an exact search."""
        found, true = self.search(adapted, k).rows, self.scan.search(adapted, k).rows
        both = [np.isin(rows, others).sum() for rows, others in zip(true, found, strict=True)]
        return float(np.sum(both) / max(1, true.size))
