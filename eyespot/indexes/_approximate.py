"""Approximate search made safe: a rough pass names candidates, which are scored again from the vectors themselves.

Whatever is rough inside, an answer is never short and never out of the mask. Few rows left are searched exactly, so are
rows that came after the index was built, and so is a query for which the rough pass names too few.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._asked import allowed, positive, queries_for
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import NOT_FINITE, Block, NotFiniteVectors, evenly
from eyespot.kernels.rows import Ids, Reals, RowBlocks, add_products, rank
from eyespot.types import Mask, NearestRows, UsageError, Vectors

K = 50  # answers that `depth` and `recall` speak of
LEAST = 1024  # rows; fewer are neither enough to train on nor worth it
# Codes of four bits for four numbers are a 32nd of float32 vectors, and rows picked out of a mapped file are read at
# about half the speed of rows in order: so few rows left cost no more than a pass over the codes.
NARROW = 64
_NAMED = 1 << 22  # rows that a group of queries has named at once, at some thirty bytes each
_COMPARED = 64  # rows by which an index knows its vectors
_GATHERED = 1 << 22  # numbers of vectors in memory at once
_ROUNDING = 1e-5  # of a float32 product, relative to the largest; far above what dim terms lose


class Finder(Protocol):
    """The rough pass: likely rows among those it was built of, which it numbers from 0 in its own order."""

    rows: int
    sieving: bool  # whether it can look among the rows of a mask only

    def likely(self, queries: NDArray[np.float32], count: int, probes: int, mask: Mask | None = None) -> Ids:
        """(m, count) rows, likeliest first, -1 where it names no more. Only a sieving one gets a mask."""
        ...


@dataclass(frozen=True)
class Use:
    """How a built index is used.

    probes: how many lists it looks into, or of a graph efSearch; 0: as its kind does unasked.
    depth: how many rows are scored again for up to 50 answers, in proportion for more.
    recall: the share of the 50 nearest that were found when it was measured; NaN: never.
    covered: the blocks it was built of, in its order; None: all.
    """

    probes: int = 0
    depth: int = 20 * K
    recall: float = math.nan
    covered: Sequence[int] | None = None

    def __post_init__(self) -> None:
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
        # An index like this is opened so as not to hold the vectors' codes in memory; exact searches make none here.
        self._whole = Exact(blocks, patience=math.inf)
        self._fresh = Exact([blocks[at] for at in self._new.which], patience=math.inf)

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
        likely = self._likely(checked, k, mask)
        answers = [self._best(query, rows, k, mask) for query, rows in zip(checked, likely, strict=True)]
        scores = np.array([scores for _, scores in answers])
        return NearestRows(
            np.array([rows for rows, _ in answers], np.int64), scores.astype(np.float32), self.use.recall
        )

    def _worthwhile(self, k: int, mask: Mask | None) -> bool:
        """Whether looking for candidates is less work than reading all rows that are left."""
        left = self._old.left(mask)
        return self._finder is not None and left > max(LEAST, len(self._old) // NARROW, 2 * self._depth(k))

    def _depth(self, k: int) -> int:
        return max(k, math.ceil(self.use.depth * max(1.0, k / K)))

    def _likely(self, queries: NDArray[np.float32], k: int, mask: Mask | None) -> Iterator[Ids]:
        """For each query the rows to score, each once and in order."""
        assert self._finder is not None
        rough = _Rough.of(self._finder, self._depth(k), self.use.probes, self._old.mask(mask))
        step = max(1, _NAMED // rough.count)
        for some in (queries[start : start + step] for start in range(0, len(queries), step)):
            found = self._old.numbered(rough.candidate_rows(some))
            fresh = np.empty((len(some), 0), np.int64)
            if self._new.left(mask):
                fresh = self._new.numbered(self._fresh.search(some, k, self._new.mask(mask)).rows)
            both = (np.unique(rows) for rows in np.concatenate([found, fresh], axis=1))
            yield from (rows[rows >= 0] for rows in both)

    def _best(self, query: NDArray[np.float32], rows: Ids, k: int, mask: Mask | None) -> tuple[Ids, Reals]:
        """In float32 down to those that may be among the k best, then in double precision."""
        if len(rows) < k:
            found, scores = self._whole.ranked(query[None], k, mask)
            return found[0], scores[0]
        # (n,)
        step = max(1, _GATHERED // max(1, self._rows.dim))
        parts = [self._rows.gather(rows[start : start + step]) @ query for start in range(0, len(rows), step)]
        rough = np.concatenate(parts)
        floor = np.partition(rough, -k)[-k] - _ROUNDING * np.abs(rough).max()
        near = rows[~(rough < floor)]
        scores = self._rows.scores(near, query.astype(np.float64), add_products)
        if not np.isfinite(scores).all():
            raise NotFiniteVectors(NOT_FINITE)
        return rank(near, scores, k)


@dataclass(frozen=True)
class _Rough:
    """What a finder is asked: the narrower the mask, the more lists it looks into, or the more rows it names."""

    finder: Finder
    count: int  # rows to name for a query
    probes: int
    mask: Mask | None

    @classmethod
    def of(cls, finder: Finder, count: int, probes: int, mask: Mask | None) -> _Rough:
        """For so many rows that the mask lets through."""
        if mask is None:
            return cls(finder, count, probes, None)
        thinned = len(mask) / max(1, int(np.count_nonzero(mask)))
        most = count if finder.sieving else min(len(mask), math.ceil(1.2 * count * thinned))
        return cls(finder, most, math.ceil(probes * thinned), mask)

    def candidate_rows(self, queries: NDArray[np.float32]) -> Ids:
        """(m, count) rows that the mask lets through, -1 in the place of others."""
        if self.mask is None or self.finder.sieving:
            return self.finder.likely(queries, self.count, self.probes, self.mask)
        rows = self.finder.likely(queries, self.count, self.probes)
        return np.where((rows >= 0) & self.mask[rows], rows, -1)


def name_of(rows: RowBlocks) -> str:
    """Names the vectors that an index is built of, by their shape and some of them."""
    told = hashlib.blake2b(f"{len(rows)} {rows.dim}".encode(), digest_size=16)
    told.update(np.ascontiguousarray(rows.gather(evenly(len(rows), _COMPARED))).tobytes())
    return told.hexdigest()


def widened(vectors: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Vectors (n, dim ≤ width) with zeros behind them, (n, width), which changes no inner product."""
    if vectors.shape[1] == width:
        return np.ascontiguousarray(vectors)
    wide = np.zeros((len(vectors), width), np.float32)
    wide[:, : vectors.shape[1]] = vectors
    return wide


def refuse_others(rows: RowBlocks, name: str | None, count: int) -> None:
    """`UsageError` if an index of so many vectors, whose name was kept with it, is of others than these."""
    told = f"the index is of {count} rows and the vectors have {len(rows)}" if count != len(rows) else ""
    if told or name not in (None, name_of(rows)):
        raise UsageError(f"{told or 'the index is of other vectors'}; build it again with: eyespot tune")


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
