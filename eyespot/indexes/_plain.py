"""A first pass in numpy over the vectors themselves: nothing to build, nothing to compile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._batches import QueryBatch
from eyespot.kernels.codes import chunks, floats, lengths
from eyespot.kernels.rows import Ids, Reals, RowBlocks, Shortlist, joined
from eyespot.types import Mask

_CHUNK = 1 << 22  # numbers looked at together
_TOGETHER = 1024  # queries that share one reading of the vectors
_LARGE = 1e30  # products below this cannot overflow float32


class PlainProducts:
    """Inner products in float32, with a bound on their rounding.

    However its terms are ordered, a float32 sum of dim products is off by at most γ |q| |x| with
    γ = dim u / (1 - dim u), u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
    """

    def __init__(self, rows: RowBlocks, blocks: Sequence[int] | None = None) -> None:
        self._rows, self._which = rows, range(len(rows.blocks)) if blocks is None else blocks
        self._norms: dict[int, Reals] = {}  # by the number of a chunk's first row

    def scan_each(self, batch: QueryBatch) -> list[Shortlist]:
        """What may be among the best of each query, of which each has its own k and mask: a scan for each mask."""
        found: dict[int, Shortlist] = {}
        for places, mask in batch.by_mask():
            k = int(batch.ks[places].max(initial=1))
            for some in (places[start : start + _TOGETHER] for start in range(0, len(places), _TOGETHER)):
                found |= zip(some.tolist(), self._scan(batch.queries[some], k, mask), strict=True)
        return [found[at] for at in range(len(batch))]

    def _scan(self, queries: NDArray[np.float32], k: int, mask: Mask | None) -> list[Shortlist]:
        pools = Pools(queries, k)
        for at in self._which:
            block, first = self._rows.blocks[at], int(self._rows.starts[at])
            allowed = None if mask is None else mask[first : first + len(block)]
            if allowed is None:
                for start, stop in chunks(block, _CHUNK):
                    vectors = floats(block, slice(start, stop))
                    if first + start not in self._norms:
                        self._norms[first + start] = lengths(vectors)
                    pools.offer(vectors, self._norms[first + start], np.arange(first + start, first + stop))
                continue
            rows = np.flatnonzero(allowed)  # these alone are read
            step = max(1, _CHUNK // max(1, block.shape[1]))
            for some in (rows[start : start + step] for start in range(0, len(rows), step)):
                vectors = floats(block, some)
                pools.offer(vectors, lengths(vectors), some + first)
        return pools.lists()


class Pools:
    """Per query the rows seen so far that may count, and the floor: k rows are surely at least this good."""

    def __init__(self, queries: NDArray[np.float32], k: int) -> None:
        self._queries, self._k = queries, k
        self._lengths = np.linalg.norm(queries.astype(np.float64), axis=1) * (1 + 1e-9)  # (m,)
        self.floors = np.full(len(queries), -np.inf)
        self._best: list[Reals] = [np.empty(0) for _ in queries]
        self._pieces: list[list[Shortlist]] = [[] for _ in queries]

    def lists(self) -> list[Shortlist]:
        nothing = Shortlist(np.empty(0, np.int64), np.empty(0), np.empty(0))
        return [joined([nothing, *pieces]).promising(self._k) for pieces in self._pieces]

    def add(self, j: int, seen: Shortlist) -> None:
        promising = seen.promising(self._k)  # of a chunk in ascending order hardly a row is
        self._pieces[j].append(promising)
        best = np.concatenate([self._best[j], promising.low])
        if len(best) >= self._k:
            best = np.partition(best, -self._k)[-self._k :]
            self.floors[j] = best[0]
        self._best[j] = best

    def offer(self, vectors: NDArray[np.float32], norms: Reals, numbers: Ids) -> None:
        longest = float(norms.max())
        # (m, n) inner products, and how far rounding may put them off per unit of both lengths
        kind: type = np.float32 if float(self._lengths.max()) * longest < _LARGE else np.float64
        scores: NDArray[Any] = self._queries.astype(kind, copy=False) @ vectors.astype(kind, copy=False).T
        rounding = (vectors.shape[1] + 8) * 2.0 ** (-23 if kind is np.float32 else -52)  # 2 dim u, more than γ
        vanished = vectors.shape[1] * 2.0**-120  # products too small for float32
        slack = rounding * self._lengths  # (m,), per unit of a row's length
        most = slack * norms.max() + vanished  # (m,)
        if np.isneginf(self.floors).any() and len(norms) >= self._k:
            self.floors = np.maximum(self.floors, np.partition(scores, -self._k, axis=1)[:, -self._k] - most)
        which, at = np.nonzero(scores >= (self.floors - most)[:, None])
        middle, reach = scores[which, at].astype(np.float64), slack[which] * norms[at] + vanished
        seen = Shortlist(numbers[at], middle - reach, middle + reach)
        count = len(self._queries)
        # The stretch of each number in a sorted array
        cuts = np.searchsorted(which, np.arange(count + 1))
        runs = ((j, slice(cuts[j], cuts[j + 1])) for j in range(count) if cuts[j] < cuts[j + 1])
        for j, part in runs:
            self.add(j, seen.only(part))
