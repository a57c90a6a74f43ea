"""The rows of several blocks of vectors under one numbering, their true scores, and the ranking these give."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.codes import Block, floats
from eyespot.kernels.prefetch import MOST, prefetch_rows
from eyespot.types import Mask, UsageError

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]
Inner = Callable[[Any, Ids, Reals, Reals], None]  # vectors, rows, query, scores (written)

_AT_ONCE = 1 << 20  # numbers gathered at once


class Shortlist(NamedTuple):
    """Rows that may be among the best of one query; their scores lie between low and high."""

    rows: Ids
    low: Reals
    high: Reals

    def promising(self, k: int) -> Shortlist:
        """Without the rows that k others surely beat."""
        if len(self.rows) <= k:
            return self
        floor = np.partition(self.low, -k)[-k]
        return self.only(~(self.high < floor))

    def only(self, which: NDArray[Any] | slice) -> Shortlist:
        return Shortlist(self.rows[which], self.low[which], self.high[which])


def joined(lists: Sequence[Shortlist]) -> Shortlist:
    return Shortlist(*(np.concatenate(column) for column in zip(*lists, strict=True)))


def add_products(vectors: NDArray[np.float32], rows: Ids, query: Reals, scores: Reals) -> None:
    """scores[i] = vectors[rows[i]] · query, in double precision and one order of summation: equal rows score equally.

    Every eighth product goes to the same of eight sums, which are added in pairs; so it is on every processor, and
    compiled too, and the scores of one process are those of another.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # whoever ranks refuses what is not finite
        products = vectors[rows] * query  # (n, dim)
        whole = products.shape[1] // 8 * 8
        sums = products[:, :whole].reshape(len(products), whole // 8, 8).sum(axis=1)
        for _ in range(3):
            sums = sums[:, ::2] + sums[:, 1::2]
        rest = np.zeros(len(products))
        for at in range(whole, products.shape[1]):
            rest += products[:, at]
        scores[:] = sums[:, 0] + rest


class RowBlocks:
    """Blocks (n_i, dim) of float32 or float16, their rows numbered through in order."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if block.ndim != 2 or block.dtype not in (np.float32, np.float16):
                problem, way_out = (
                    f"{block.dtype} of shape {block.shape}",
                    "; take .astype(np.float32)" * (block.ndim == 2),
                )
                raise UsageError(f"vectors must be rows of float32 or float16, not {problem}{way_out}")
        self.blocks = [np.asarray(block) for block in blocks]
        if len({block.shape[1] for block in self.blocks}) > 1:
            raise UsageError(f"vectors of different lengths: {', '.join(str(b.shape[1]) for b in self.blocks)}")
        self.dim = self.blocks[0].shape[1] if self.blocks else 0
        self.starts = np.cumsum([0, *(len(block) for block in self.blocks)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def scores(self, rows: Ids, query: Reals, inner: Inner) -> Reals:
        """The inner products of some rows (n,) with one query (dim,), in double precision; see `prefetch`."""
        order = np.argsort(rows)
        found = np.empty(len(rows))
        step = max(1, _AT_ONCE // max(1, self.dim))
        for block, first, part in self._by_block(rows[order]):
            there = rows[order[part]] - first
            for at in range(0, len(there), step):
                some, out = there[at : at + step], found[part][at : at + step]
                if block.dtype == np.float32 and block.flags.c_contiguous:
                    inner(block, some, query, out)
                else:
                    inner(floats(block, some), np.arange(len(some)), query, out)
        scores = np.empty(len(rows))
        scores[order] = found
        return scores

    def gather(self, rows: Ids) -> NDArray[np.float32]:
        """These rows in float32, (n, dim), in the order given; not copied if they are a stretch of such a block."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all():
            stretch = [int(rows[0]), int(rows[-1]) + 1]
            cuts = np.clip(stretch, self.starts[:-1, None], self.starts[1:, None]) - self.starts[:-1, None]
            parts = [floats(block, slice(*cut)) for block, cut in zip(self.blocks, cuts.tolist(), strict=True)]
            parts = [part for part in parts if len(part)]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        found = np.empty((len(rows), self.dim), np.float32)
        if (rows[1:] >= rows[:-1]).all():
            self.prefetch(rows)
            for block, first, part in self._by_block(rows):
                if block.dtype == np.float32 and block.flags.c_contiguous:
                    np.take(block, rows[part] - first, axis=0, out=found[part], mode="clip")  # other modes copy twice
                else:
                    found[part] = block[rows[part] - first]
            return found
        order = np.argsort(rows, kind="stable")
        self.prefetch(rows[order])
        for block, first, part in self._by_block(rows[order]):
            found[order[part]] = block[rows[order[part]] - first]
        return found

    def prefetch(self, ascending: Ids) -> None:
        """Let the system begin to read these rows, unless they are very many."""
        if len(ascending) <= MOST:
            for block, first, part in self._by_block(ascending):
                prefetch_rows(block, ascending[part] - first)

    def _by_block(self, ascending: Ids) -> Iterator[tuple[Block, int, slice]]:
        cuts = np.searchsorted(ascending, self.starts)
        for block, first, start, stop in zip(self.blocks, self.starts, cuts, cuts[1:], strict=False):
            if start < stop:
                yield block, int(first), slice(start, stop)


def unit_rows(blocks: Sequence[Block], rows: Ids) -> NDArray[np.float32]:
    """Rows of several blocks (n_i, dim), numbered through, in float32 and of unit length, (n, dim)."""
    found = RowBlocks(blocks).gather(rows)
    unit: NDArray[np.float32] = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return unit


def rank(rows: Ids, scores: Reals, k: int) -> tuple[Ids, Reals]:
    """The k best, best first; of equal scores the lower row."""
    best = np.lexsort((rows, -scores))[:k]
    return rows[best], scores[best]


# -- checks of a request --------------------------------------------------------------------------------------


def positive(k: int) -> int:
    """k as an int; `UsageError` below 1."""
    if operator.index(k) < 1:
        raise UsageError(f"k is {k}; ask for at least one row")
    return operator.index(k)


def allowed(mask: Mask | None, rows: int) -> Mask | None:
    """The mask, (rows,); `UsageError` for one of another shape or type."""
    if mask is None:
        return None
    if mask.dtype != np.bool_ or mask.shape != (rows,):
        raise UsageError(f"the mask is {mask.dtype} of shape {mask.shape}; give a boolean for each of the {rows} rows")
    return np.ascontiguousarray(mask)
