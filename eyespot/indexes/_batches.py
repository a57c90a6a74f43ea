"""Several queries in one reading of the codes, each with its own k and its own mask.

A byte of each row has a bit for each mask, so that up to eight masks share a scan. The answers are those of each query
alone: a first pass only rules rows out, by proven bounds, and every query has its own bound of its k best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.rows import Ids, RowBlocks
from eyespot.types import Mask, ScanRequest, UsageError, Vectors

MASKS = 8  # that share a scan: the bits of a byte
DEEP = 4096  # rows of an answer; more are searched alone, for their lists are long
_NARROW = 4  # a mask that lets fewer than one row in so many through is scanned alone: its own rows are soon read


@dataclass(frozen=True)
class QueryBatch:
    """Queries (m, dim) with their k (m,), and the bit (m,) of each one's mask among those of all rows.

    allowed: (rows,), a bit for each mask; empty where all rows are let through.
    """

    queries: NDArray[np.float32]
    ks: Ids
    allowed: NDArray[np.uint8]
    masks: NDArray[np.uint8]

    @classmethod
    def of(cls, queries: NDArray[np.float32], k: int, mask: Mask | None) -> QueryBatch:
        """Queries with one k and one mask."""
        return cls.each(queries, [k] * len(queries), [mask] * len(queries))

    @classmethod
    def each(cls, queries: NDArray[np.float32], ks: Sequence[int], masks: Sequence[Mask | None]) -> QueryBatch:
        """Queries with a k and a mask each, of at most `MASKS` different ones; an array is one mask."""
        different = list({id(mask): mask for mask in masks}.values())
        bits = {id(mask): 1 << at for at, mask in enumerate(different)}
        own = np.array([bits[id(mask)] for mask in masks], np.uint8)
        if all(mask is None for mask in different):
            return cls(queries, np.array(ks, np.int64), np.empty(0, np.uint8), own)
        there = next(mask for mask in different if mask is not None)
        if len(different) == 1:
            return cls(queries, np.array(ks, np.int64), there.view(np.uint8), own)
        allowed = np.zeros(len(there), np.uint8)
        for mask in different:
            allowed |= np.uint8(bits[id(mask)]) if mask is None else mask.view(np.uint8) * np.uint8(bits[id(mask)])
        return cls(queries, np.array(ks, np.int64), allowed, own)

    def __len__(self) -> int:
        return len(self.queries)

    def part(self, which: slice) -> QueryBatch:
        """Some of the queries."""
        return QueryBatch(self.queries[which], self.ks[which], self.allowed, self.masks[which])

    def by_mask(self) -> Iterator[tuple[Ids, Mask | None]]:
        """The places of the queries of each mask, and the mask."""
        for bit in sorted({*self.masks.tolist()}):
            yield np.flatnonzero(self.masks == bit), (self.allowed & bit) != 0 if len(self.allowed) else None


def shared_scans(requests: Sequence[ScanRequest], counts: Sequence[int], rows: int, mixed: bool) -> list[list[int]]:
    """The requests that share a scan, by their places; `counts` are the rows that each one's mask lets through.

    mixed: whether different masks share one. Those of one mask always do, unless they ask for very many rows.
    """
    groups: dict[int, list[int]] = {}
    for at, (request, count) in enumerate(zip(requests, counts, strict=True)):
        alone, wide = request.k > DEEP, count * _NARROW >= rows
        groups.setdefault(-1 - at if alone else 0 if wide and mixed else id(request.mask), []).append(at)
    scans = []
    for places in groups.values():
        of: dict[int, list[int]] = {}
        for at in places:
            of.setdefault(id(requests[at].mask), []).append(at)
        masks = list(of.values())
        few = (masks[start : start + MASKS] for start in range(0, len(masks), MASKS))
        scans += [sorted(at for same in some for at in same) for some in few]
    return scans


# -- checks of the request ------------------------------------------------------------------------------------


def queries_for(rows: RowBlocks, queries: Vectors) -> NDArray[np.float32]:
    """The queries in contiguous float32, (m, dim); `UsageError` for another length and for what is not finite."""
    vectors = np.ascontiguousarray(queries, np.float32)
    if vectors.ndim != 2 or (rows.blocks and vectors.shape[1] != rows.dim):
        raise UsageError(f"queries of shape {vectors.shape} do not fit these vectors; give (queries, {rows.dim})")
    if not np.isfinite(vectors).all():
        raise UsageError("a query holds NaN or infinity; encode it again")
    return vectors
