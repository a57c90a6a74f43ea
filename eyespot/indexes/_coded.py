"""A first pass over int8 codes: a quarter of the bytes of float32, and the same answers by a bound on the rest."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._batches import QueryBatch
from eyespot.indexes._plain import PlainProducts, Pools
from eyespot.kernels.codes import Codes, chunks, default_threads, padded
from eyespot.kernels.rows import Ids, Reals, RowBlocks, Shortlist, joined

_TILE = 4  # queries of a batch that are multiplied together
_TOGETHER = 128  # queries that share one reading of the codes
_SINGLE = 4  # queries that are scanned one by one where a batch has no instructions of its own
_ROOM = 1 << 21  # places in all lists of a thread together, 24 bytes each
_LIST = 1 << 14  # of one query at least: what overflows is scanned again alone, and texts have many near ties
_SHARE = 1 << 26  # codes a thread takes at a time
_SOON = 1 << 30  # codes that numpy scans sooner than kernels are loaded: five times as many take as long
_WIDENED, _SAFE = 1 << 17, 2.0**100  # codes widened at once; how long a query may be in float32


class CodedProducts:
    """Inner products of quantised vectors and quantised queries in whole numbers, with a bound on both errors.

    With x = c + s a + e (centre, codes a, rest e) and q = t p + f (whole numbers p, rest f):
    q·x = q·c + s t (p·a) + f·(s a) + q·e, so q·x is within |f| |s a| + |q| |e| of q·c + s t (p·a). The sum p·a is
    exact in 32 bits; everything else is double precision, whose rounding is added to the bound.
    """

    def __init__(self, codes: Sequence[Codes], threads: int | None, starts: Ids | None = None) -> None:
        self.codes, self._threads = codes, threads or default_threads()
        # The number of each block's first row; blocks without codes may lie between them
        self._starts = np.cumsum([0, *(len(part.codes) for part in codes)]) if starts is None else starts
        self._threads_of: tuple[int, ThreadPoolExecutor] | None = None
        self._scanned, self._known = 0, (b"", list[NDArray[np.float32]]())  # the products of the last query

    def scan_each(self, batch: QueryBatch) -> list[Shortlist]:
        """What may be among the best of each query, of which each has its own k and mask."""
        if len(batch) == 1 and "numba" not in sys.modules and float(np.abs(batch.queries).sum()) < _SAFE:
            known = batch.queries.tobytes() == self._known[0]
            self._scanned += 0 if known else sum(part.codes.size for part in self.codes)
            if known or self._scanned <= _SOON:
                return self.widened_pass(batch)
        from eyespot.kernels import tiles

        return self.first_pass(batch, len(batch) <= (1 if tiles.fast() else _SINGLE))

    def first_pass(self, batch: QueryBatch, single: bool) -> list[Shortlist]:
        """The same with every query alone, in 16 bits, or in batches, in 8 bits."""
        if single:
            return self._scan(_few(batch.queries), batch)
        together = min(_TOGETHER, max(_TILE, _ROOM // _room(int(batch.ks.max(initial=1)))))
        groups = [batch.part(slice(start, start + together)) for start in range(0, len(batch), together)]
        shortlists = []
        for group in groups:
            found = self._scan(_many(group.queries), group)[: len(group)]
            # A query with more near ties than its list holds comes back empty, and is scanned again alone.
            for j in (j for j, shortlist in enumerate(found) if not len(shortlist.rows)):
                one = group.part(slice(j, j + 1))
                found[j] = self._scan(_few(one.queries), one)[0]
            shortlists += found
        return shortlists

    def widened_pass(self, batch: QueryBatch) -> list[Shortlist]:
        """The same of one query, shorter than 2¹⁰⁰, by numpy: f is 0, and what float32 rounds off p·a in its place."""
        exact = batch.queries.astype(np.float64)
        dim, lengths, query = exact.shape[1], np.linalg.norm(exact, axis=1) * (1 + 1e-9), _padded(exact, np.float32)[0]
        given = _QuantisedQueries(exact, query, np.ones(1), (len(query) + 8) * 2.0**-23 * lengths, lengths)
        pools, (known, products) = Pools(batch.queries, int(batch.ks[0])), self._known
        if known != batch.queries.tobytes():  # a search in groups asks for more and more of one query's best
            products = [_widened_products(np.asarray(codes.codes), query) for codes in self.codes]
            self._known = batch.queries.tobytes(), products
        for codes, first, every in zip(self.codes, self._starts.tolist(), products, strict=False):
            offset, _, whole, left, spare = given.terms(codes)[:, 0].tolist()
            for start, stop in chunks(codes.codes):
                scale, lost, long = np.asarray(codes.bounds[start:stop, :3]).T.astype(np.float64)
                middle = offset + scale * every[start:stop]
                reach = lost * whole + long * left + scale * (dim * 2.0**-120) + spare
                near = ~(middle + reach < pools.floors[0])
                if batch.allowed.size:
                    near &= batch.allowed[first + start : first + stop] != 0
                at_rows, middle, reach = np.flatnonzero(near), middle[near], reach[near]
                pools.add(0, Shortlist(at_rows + first + start, middle - reach, middle + reach))
        return pools.lists()

    def _scan(self, quantised: _QuantisedQueries, batch: QueryBatch) -> list[Shortlist]:
        shares = deque((part, *span) for part, codes in enumerate(self.codes) for span in chunks(codes.codes, _SHARE))
        workers = [_Worker(quantised, batch) for _ in range(min(self._threads, len(shares)) or 1)]

        def work(worker: _Worker) -> None:
            while shares:
                try:
                    part, start, stop = shares.popleft()
                except IndexError:  # another thread took the last one
                    return
                worker.scan(self.codes[part], (int(self._starts[part]), start, stop))

        # Threads that wait for the next scan: on a busy machine starting them takes longer than a scan
        if self._threads_of is None or self._threads_of[0] != os.getpid():  # a fork has none of them
            self._threads_of = os.getpid(), ThreadPoolExecutor(self._threads, "scan")
        others = [self._threads_of[1].submit(work, worker) for worker in workers[1:]]
        work(workers[0])
        for other in others:
            other.result()
        shortlists = []
        for j, k in enumerate(batch.ks.tolist()):
            lists = [worker.list(j) for worker in workers]
            whole = [part for part in lists if part is not None]
            nothing = Shortlist(np.empty(0, np.int64), np.empty(0), np.empty(0))
            shortlist = joined(whole).promising(k) if len(whole) == len(lists) else nothing
            shortlists.append(shortlist)
        return shortlists


class MixedProducts:
    """A first pass over the codes of the blocks that have some, and the vectors of those that have none.

    codes: of each block, None for one without.
    """

    def __init__(self, rows: RowBlocks, codes: Sequence[Codes | None], threads: int | None) -> None:
        self.codes = codes
        coded = [at for at, part in enumerate(codes) if part is not None]
        self._coded = CodedProducts([part for part in codes if part is not None], threads, rows.starts[coded])
        self._plain = PlainProducts(rows, [at for at, part in enumerate(codes) if part is None])

    def scan_each(self, batch: QueryBatch) -> list[Shortlist]:
        """What may be among the best of each query, of which each has its own k and mask."""
        both = zip(self._coded.scan_each(batch), self._plain.scan_each(batch), batch.ks.tolist(), strict=True)
        return [joined((coded, plain)).promising(k) for coded, plain, k in both]


class _QuantisedQueries(NamedTuple):
    """Queries as whole numbers: step · whole + left; `whole` is int16 for a few of them, uint8 above 128 for many."""

    queries: Reals  # (m, dim)
    whole: NDArray[Any]  # (m, width)
    step: Reals  # (m,)
    left: Reals  # (m,), its length
    lengths: Reals  # (m,)
    fine: _QuantisedQueries | None = None  # of many: the same in 16 bits

    def terms(self, codes: Codes) -> Reals:
        """(5, m): what a row's score is computed from, and what its bound is computed from; see `kernels.scans`."""
        rounding = (self.queries.shape[1] + 16) * 2.0**-50
        centre = codes.centre.astype(np.float64)
        spare = 2 * rounding * self.lengths * np.linalg.norm(centre)
        left = self.left + rounding * self.lengths
        return np.stack([self.queries @ centre, self.step, self.lengths, left, spare])


def _quantise_queries(queries: Reals, step: Reals) -> tuple[_QuantisedQueries, Reals]:
    step = np.where(step > 0, step, 1.0)
    whole = np.rint(queries / step[:, None])  # (m, dim)
    left = np.linalg.norm(queries - step[:, None] * whole, axis=1)
    return _QuantisedQueries(
        queries, whole, step, left * (1 + 1e-9), np.linalg.norm(queries, axis=1) * (1 + 1e-9)
    ), whole


def _few(queries: NDArray[np.floating[Any]]) -> _QuantisedQueries:
    """Sixteen bits, less where a sum of products with codes could leave 32 bits."""
    exact = queries.astype(np.float64)
    size = np.abs(exact)
    most = (2**31 - 1) / 127 - exact.shape[1]
    batch, whole = _quantise_queries(exact, np.maximum(size.max(axis=1) / 32767, size.sum(axis=1) / most))
    return batch._replace(whole=_padded(whole, np.int16))


def _many(queries: NDArray[np.float32]) -> _QuantisedQueries:
    exact = np.zeros((-(-len(queries) // _TILE) * _TILE, queries.shape[1]))  # whole tiles
    exact[: len(queries)] = queries
    batch, whole = _quantise_queries(exact, np.abs(exact).max(axis=1) / 127)
    return batch._replace(whole=_padded(whole + 128, np.uint8), fine=_few(exact))


def _padded(whole: Reals, kind: type) -> NDArray[Any]:
    wide: NDArray[Any] = np.zeros((len(whole), padded(whole.shape[1])), kind)
    wide[:, : whole.shape[1]] = whole
    return wide


def _widened_products(codes: NDArray[np.int8], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The products of rows (n, width) and a query (width,), (n,), of rows that a processor's cache holds at once."""
    products, widened = np.empty(len(codes), np.float32), np.empty((_WIDENED // len(query) + 1, len(query)), np.float32)
    for start in range(0, len(codes), len(widened)):
        some = codes[start : start + len(widened)]
        np.copyto(widened[: len(some)], some)
        np.dot(widened[: len(some)], query, out=products[start : start + len(some)])
    return products


def _room(k: int) -> int:
    return max(_LIST, 8 * k)


class _Worker:
    """One thread's shortlists of all queries, in the arrays the kernels fill."""

    def __init__(self, quantised: _QuantisedQueries, batch: QueryBatch) -> None:
        count, k = len(quantised.lengths), int(batch.ks.max(initial=1))
        self._asked, self._allowed = quantised, batch.allowed
        self._masks = np.ones(count, np.uint8)
        self._masks[: len(batch)] = batch.masks
        self._heaps, self._floors = np.full((count, k), -np.inf), np.full(count, -np.inf)
        for heap, own in zip(self._heaps, batch.ks.tolist(), strict=False):
            heap[own:] = np.inf  # its first place is the least of the k best all the same
        self._rows = np.empty((count, _room(k)), np.int64)
        self._limits = np.empty((count, _room(k), 2))
        self._counts = np.zeros(count, np.int64)
        if quantised.fine is not None:
            self._floors[quantised.lengths == 0] = np.inf  # all rows tie

    def scan(self, codes: Codes, span: tuple[int, int, int]) -> None:
        from eyespot.kernels.scans import scan_few, scan_many

        first, start, stop = span
        allowed = self._allowed[first : first + len(codes.codes)]
        gallery = np.asarray(codes.codes), np.asarray(codes.bounds), allowed
        batch = self._asked.whole, self._asked.terms(codes), self._masks
        if (fine := self._asked.fine) is not None:
            scan_many(gallery, (*batch, fine.whole, fine.terms(codes)), self._state(), span)
            return
        while (start := scan_few(gallery, batch, self._state(), (first, start, stop))) < stop:
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)], axis=1)
            self._limits = np.concatenate([self._limits, np.empty_like(self._limits)], axis=1)

    def list(self, j: int) -> Shortlist | None:
        """The rows query j may want; None if there were too many to keep."""
        if self._floors[j] == np.inf:
            return None
        low, high = self._limits[j, : self._counts[j]].T
        return Shortlist(self._rows[j, : self._counts[j]], low, high)

    def _state(self) -> tuple[NDArray[Any], ...]:
        return self._heaps, self._floors, self._rows, self._limits, self._counts
