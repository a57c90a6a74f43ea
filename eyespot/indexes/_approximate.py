"""Approximate search made safe: a rough pass names candidates, which are scored again from the vectors themselves.

Whatever is rough inside, an answer is never short and never out of the mask. Few rows left are searched exactly, so are
rows that came after the index was built, and so is a query for which the rough pass names too few, or of whose nearest
it seems to have missed more than was promised.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._batches import queries_for
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import NOT_FINITE, Block, NotFiniteVectors, evenly
from eyespot.kernels.rows import Ids, Reals, RowBlocks, add_products, allowed, positive, rank
from eyespot.types import Mask, NearestRows, UsageError, Vectors

K = 50  # answers that `depth` and `recall` speak of
LEAST = 1024  # rows; fewer are neither enough to train on nor worth it
# Codes of four bits for four numbers are a 32nd of float32 vectors, and rows picked out of a mapped file are read at
# about half the speed of rows in order: so few rows left cost no more than a pass over the codes.
# Int8 codes are a quarter, and their rows are skipped at no cost.
NARROW, NARROW_CODED = 64, 8
SLACK = 0.02  # an estimate for one query may be so far below what was promised of the mean
_NAMED = 1 << 22  # rows that a group of queries has named at once, at some thirty bytes each
_COMPARED = 64  # rows by which an index knows its vectors
_GATHERED = 1 << 22  # numbers of vectors in memory at once
_STEPS = 48  # of the integral
_REACH = 6.0  # standard deviations; beyond them nothing is missed
_FITTED = 8  # rows that a line is fitted to
_DOUBLINGS = 60.0  # more are more rows than there are
_ROUNDING = 1e-5  # of a float32 product, relative to the largest; far above what dim terms lose


Scored = tuple[NDArray[np.float32], Ids]  # about how near, and rows, -1 where there are no more; (m, count) both


class Finder(Protocol):
    """The rough pass: likely rows among those it was built of, which it numbers from 0 in its own order."""

    rows: int
    sieving: bool  # whether it can look among the rows of a mask only
    complete: bool  # whether it scores every row, and so names those with the highest rough scores

    def scored(self, queries: NDArray[np.float32], count: int, probes: int, mask: Mask | None = None) -> Scored:
        """About how near, and rows, likeliest first, -1 where it names no more. Only a sieving one gets a mask."""


@dataclass(frozen=True, eq=False)
class Use:
    """How a built index is used.

    probes: how many lists it looks into, or of a graph efSearch; 0: as its kind does unasked.
    depth: how many rows are scored again for up to 50 answers, in proportion for more.
    recall: the share of the 50 nearest that were found when it was measured; NaN: never.
    covered: the blocks it was built of, in its order; None: all.
    promise: the share that is promised; a query whose estimate is more than `SLACK` below it is searched exactly. 0:
    none is. Only a finder that is complete has estimates.
    live: the rows that are there, (rows,), if not all are: a mask that is this one is not a filter.
    exact: opens exact search over all blocks, for what is not searched approximately; None: without codes on the disk.
    """

    probes: int = 0
    depth: int = 20 * K
    recall: float = math.nan
    covered: Sequence[int] | None = None
    promise: float = 0.0
    live: Mask | None = None
    exact: Callable[[], Exact] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.promise <= 1:
            raise UsageError(f"promise is {self.promise}; it is a share, from 0 to 1")
        if self.depth < 1 or self.probes < 0:
            raise UsageError(f"depth is {self.depth} and probes {self.probes}; look at one row at least")


def divided(options: Mapping[str, Any], shape: Any) -> tuple[Use, Any]:
    """Options of `load`, some on using and some on building; `UsageError` names what there is for one too many."""
    using, building = ([field.name for field in fields(kind)] for kind in (Use, shape))
    if strange := set(options).difference(using, building):
        raise UsageError(f"no setting {strange.pop()!r} of this index; there are: {', '.join([*building, *using])}")
    parts = ({name: options[name] for name in names if name in options} for names in (using, building))
    return Use(**next(parts)), shape(**next(parts))


class Approximate:
    """The k best rows by inner product, nearly always; scores and order of those found are exact.

    blocks: arrays (n_i, dim) of float32 or float16, as for `Exact`. finder: None where there are too few rows for one.
    """

    exact = False

    def __init__(self, blocks: Sequence[Block], finder: Finder | None, use: Use) -> None:
        self._rows, self._finder, self.use = RowBlocks(blocks), finder, use
        known = range(len(blocks)) if use.covered is None else use.covered
        self._old = _Some(self._rows, list(known))
        self._new = _Some(self._rows, [at for at in range(len(blocks)) if at not in set(known)])

    @cached_property
    def _whole(self) -> Exact:
        # Without codes on the disk it makes none: an index like this is opened so as not to hold them in memory.
        return Exact(self._rows.blocks, patience=math.inf) if self.use.exact is None else self.use.exact()

    @cached_property
    def _fresh(self) -> Exact:
        blocks, codes = [self._rows.blocks[at] for at in self._new.which], self._whole.codes
        return Exact(blocks, [codes[at] for at in self._new.which] if codes else None, patience=math.inf)

    def __len__(self) -> int:
        return len(self._rows)

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (m, dim), best first, and their inner products; of equals the lower row.

        mask: (rows,), True where a row may be found. k' = min(k, rows let through) rows come back, never fewer.
        UsageError if k < 1, or a query is not finite or of another length.
        """
        checked, mask = queries_for(self._rows, queries), allowed(mask, len(self._rows))
        if mask is not None and mask.all():
            mask = None
        k = min(positive(k), len(self._rows) if mask is None else int(np.count_nonzero(mask)))
        if not len(checked) or not self._worthwhile(k, mask):
            return self._whole.search(checked, max(1, k), mask)
        rows, scores = np.empty((len(checked), k), np.int64), np.empty((len(checked), k))
        shares = np.full(len(checked), -1.0)  # too few rows were named, whatever was promised
        for at, (query, named) in enumerate(zip(checked, self._candidates(checked, k, mask), strict=True)):
            if len(named.rows) >= k:
                rows[at], scores[at] = self._best(query, named, k)
                shares[at] = self._share(named, float(scores[at, -1]), k, self._old.left(mask))
        estimated = self._finder is not None and self._finder.complete
        low = shares < max(0.0, self.use.promise - SLACK) if estimated else shares <= 0
        if low.any():
            rows[low], scores[low] = self._whole.ranked(checked[low], k, mask)
        # A sum without rounding, so that equal shares have themselves as their mean
        mean = math.fsum(np.where(low, 1.0, shares).tolist()) / len(shares)
        stated = None if low.all() else math.nan if math.isnan(self.use.recall) else mean
        return NearestRows(rows, scores.astype(np.float32), stated)

    def _share(self, named: _Named, last: float, k: int, left: int) -> float:
        """What an answer holds of the nearest: by its own scores, or as it was measured; 0 where it must be exact."""
        assert self._finder is not None
        if not self._finder.complete:
            return 1.0 if math.isnan(self.use.recall) else max(self.use.recall, 1e-9)
        old = ~np.isnan(named.rough)
        if old.sum() < min(self._depth(k), left):
            return 0.0
        return estimate_recall(named.rough[old], named.exact[old], last, k, left)

    def _worthwhile(self, k: int, mask: Mask | None) -> bool:
        """Whether looking for candidates is less work than reading all rows that are left, and its recall is known."""
        left = self._old.left(mask)
        if self._finder is None or left <= max(LEAST, len(self._old) // NARROW, 2 * self._depth(k)):
            return False
        live = self.use.live
        filtered = mask is not None and (live is None or not np.array_equal(mask, live))
        if filtered and not self._finder.complete:
            return False  # lists and graphs are measured without a filter, and do not see what one makes them miss
        return left > len(self._old) // NARROW_CODED or not self._whole.codes

    def _depth(self, k: int) -> int:
        return max(k, math.ceil(self.use.depth * max(1.0, k / K)))

    def _candidates(self, queries: NDArray[np.float32], k: int, mask: Mask | None) -> Iterator[_Named]:
        """For each query the rows to score, each once and in order."""
        assert self._finder is not None
        old, count, probes = self._old.mask(mask), self._depth(k), self.use.probes
        if old is not None:  # the narrower it is, the more lists are looked into, or the more rows are named
            thinned = len(old) / max(1, int(np.count_nonzero(old)))
            count = count if self._finder.sieving else min(len(old), math.ceil(1.2 * count * thinned))
            probes = math.ceil(probes * thinned)
        step = max(1, _NAMED // count)
        for some in (queries[start : start + step] for start in range(0, len(queries), step)):
            near, found = self._finder.scored(some, count, probes, old if self._finder.sieving else None)
            if old is not None and not self._finder.sieving:
                found = np.where((found >= 0) & old[found], found, -1)
            found = self._old.numbered(found)
            if self._new.left(mask):
                fresh = self._new.numbered(self._fresh.search(some, k, self._new.mask(mask)).rows)
                near = np.concatenate([near, np.full(fresh.shape, np.nan, np.float32)], axis=1)
                found = np.concatenate([found, fresh], axis=1)
            for query, scores, rows in zip(some, near, found, strict=True):
                once, first = np.unique(rows, return_index=True)
                first = first[once >= 0]
                yield _Named(rows[first], scores[first].astype(np.float64), self._products(query, rows[first]))

    def _products(self, query: NDArray[np.float32], rows: Ids) -> NDArray[np.float32]:
        """Inner products with the rows themselves, (n,)."""
        step = max(1, _GATHERED // max(1, self._rows.dim))
        parts = [self._rows.gather(rows[start : start + step]) @ query for start in range(0, len(rows), step)]
        return np.concatenate([np.empty(0, np.float32), *parts])

    def _best(self, query: NDArray[np.float32], named: _Named, k: int) -> tuple[Ids, Reals]:
        """In float32 down to those that may be among the k best, then in double precision."""
        floor = np.partition(named.exact, -k)[-k] - _ROUNDING * np.abs(named.exact).max()
        near = named.rows[~(named.exact < floor)]
        scores = self._rows.scores(near, query.astype(np.float64), add_products)
        if not np.isfinite(scores).all():
            raise NotFiniteVectors(NOT_FINITE)
        return rank(near, scores, k)


@dataclass(frozen=True, eq=False)
class _Named:
    """Rows to choose from, in order: their rough scores (NaN for those found exactly) and their float32 products."""

    rows: Ids
    rough: Reals
    exact: NDArray[np.float32]


def name_of(rows: RowBlocks) -> str:
    """Names the vectors that an index is built of, by their shape and some of them."""
    digest = hashlib.blake2b(f"{len(rows)} {rows.dim}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(rows.gather(evenly(len(rows), _COMPARED))).tobytes())
    return digest.hexdigest()


def widened(vectors: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Vectors (n, dim ≤ width) with zeros behind them, (n, width), which changes no inner product."""
    if vectors.shape[1] == width:
        return np.ascontiguousarray(vectors)
    wide = np.zeros((len(vectors), width), np.float32)
    wide[:, : vectors.shape[1]] = vectors
    return wide


def refuse_others(rows: RowBlocks, name: str | None, count: int) -> None:
    """`UsageError` if an index of this number of vectors, whose name is stored with it, is of others than these."""
    mismatch = f"the index is of {count} rows and the vectors have {len(rows)}" if count != len(rows) else ""
    if mismatch or name not in (None, name_of(rows)):
        raise UsageError(f"{mismatch or 'the index is of other vectors'}; build it again with: eyespot tune")


def finite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors (n, dim) to build of: zeros for a row that is not finite, which no mask of a gallery lets through."""
    good = np.isfinite(vectors).all(axis=1, keepdims=True)  # (n, 1)
    return vectors if good.all() else np.where(good, vectors, np.float32(0))


class _Some:
    """Some of the blocks, whose rows have numbers of their own and those among all rows."""

    def __init__(self, rows: RowBlocks, which: Sequence[int]) -> None:
        self.which, self._starts = which, rows.starts[list(which)]  # (blocks,)
        lengths = [len(rows.blocks[at]) for at in which]
        self._own = np.cumsum([0, *lengths])
        self._all = len(self) == len(rows) and bool((np.diff(self._starts) >= 0).all())

    def __len__(self) -> int:
        return int(self._own[-1])

    def mask(self, mask: Mask | None) -> Mask | None:
        """What of a mask over all rows concerns these."""
        if mask is None or self._all:
            return mask
        lengths = np.diff(self._own)
        parts = [mask[start : start + n] for start, n in zip(self._starts.tolist(), lengths.tolist(), strict=True)]
        return np.concatenate([np.empty(0, np.bool_), *parts])

    def left(self, mask: Mask | None) -> int:
        """How many of these a mask over all rows lets through."""
        own = self.mask(mask)
        return len(self) if own is None else int(np.count_nonzero(own))

    def numbered(self, own: Ids) -> Ids:
        """Numbers among all rows for numbers among these; -1 stays."""
        if self._all or not len(self):
            return own
        block = np.clip(np.searchsorted(self._own, own, side="right") - 1, 0, len(self._starts) - 1)
        return np.where(own < 0, -1, own + (self._starts - self._own[:-1])[block])


# -- the recall of one answer ------------------------------------------------------------------------------


def estimate_recall(rough: Reals, exact: NDArray[np.floating], last: float, k: int, left: int) -> float:
    """The share of the k nearest that is found, by the rough and exact scores of the rows that were named, (n,) both.

    last: the exact score of the k-th answer. left: how many rows there are to find, named or not. 0 where nothing can
    be concluded, as from rough scores that are all equal.

    A rough pass reads a code of every row and names the rows with the highest rough scores r, whose exact scores s are
    then computed. So of these rows both are known: s = a + b r + e, where e has a standard deviation of sd. The choice
    is by r alone, which leaves the distribution of s given r as it is for the rows just below the cut. How many rows
    lie there is read off the list: it doubles from its middle to its end, and goes on doubling at that rate, up to the
    rows there are. The rows that are missed are those below the cut whose s is above t, the score of the last answer:

        missed = ∫ n(r) Φ((a + b r − t) / sd) dr,    recall = k / (k + missed)

    A filter needs no measurement of its own: if it removes the nearest rows, those left have nearly equal scores, b r
    says little beside sd, and many lie below the cut. Too many are counted there, so the estimate errs to the low side
    where it is low (docs/decisions/0014).
    """
    if len(rough) >= left:
        return 1.0
    spread = rough.var()
    if len(rough) < _FITTED or not spread > 0:
        return 0.0
    slope = float(((rough - rough.mean()) * (exact - exact.mean())).mean() / spread)
    end, middle = float(rough.min()), float(np.median(rough))
    if not slope > 0 or not middle > end:
        return 0.0
    start = float(exact.mean()) - slope * float(rough.mean())
    deviation = float(np.std(exact - start - slope * rough)) + 1e-12
    cut = start + slope * end  # the exact score to expect of a row at the end of the list
    depths = np.linspace(0, (_REACH * deviation + max(0.0, cut - last)) / slope, _STEPS + 1)  # below the end, in r
    doublings = np.minimum(_DOUBLINGS, depths / (middle - end))
    rows = np.minimum(len(rough) * np.expm1(doublings * math.log(2)), left - len(rough))  # above each depth
    expected = cut - slope * (depths[1:] + depths[:-1]) / 2 - last
    above = np.array([0.5 * math.erfc(-one / (deviation * math.sqrt(2))) for one in expected.tolist()])
    return k / (k + float(np.diff(rows) @ above))
