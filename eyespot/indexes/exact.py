"""Exact search: the k best rows, certified, over memory-mapped vectors of any size.

A cheap first pass knows every score to within a proven bound; whatever the bound cannot rule out is scored again in
double precision. So the answer is that of a double-precision search over all rows, whichever pass came first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._batches import QueryBatch, queries_for, shared_scans
from eyespot.kernels import compiled
from eyespot.kernels.codes import NOT_FINITE, WIDEST, Block, Codes, NotFiniteVectors, default_threads, quantise, spread
from eyespot.kernels.rows import Ids, Reals, RowBlocks, Shortlist, add_products, allowed, positive, rank
from eyespot.storage.arrays import distinct
from eyespot.types import Mask, NearestRows, ScanRequest, UsageError, Vectors

if TYPE_CHECKING:
    from eyespot.indexes._coded import CodedProducts, MixedProducts
    from eyespot.indexes._plain import PlainProducts

__all__ = ["Codes", "Exact", "load", "quantise"]

_AT_ONCE = 1000  # rows times queries; so few are scored in double precision straight away
_FEW_LEFT = 4096  # rows; so few are sooner read themselves than looked for among the codes
SMALL = 1 << 26  # numbers; a gallery up to this size is scanned in numpy sooner than kernels are loaded
_LARGE = 1 << 31  # numbers; codes of a larger gallery are used where they lie on disk and never made in memory
_BATCH = 16  # queries of a batch cost about as much as one scan


def load(vectors: Sequence[Block] | Block, **options: Any) -> Exact:
    """An exact index over one array or several blocks; options as for `Exact`."""
    return Exact(vectors, **options)


class Exact:
    """The k best rows by inner product, as a double-precision scan would rank them.

    blocks: arrays (n_i, dim) of float32 or float16, one or several, often `np.load(..., mmap_mode="r")`; rows are
        numbered through them in order. Rows need not be of unit length.
    codes: what `quantise` made of each block, for a fast first pass, which needs the extra [fast]: without it no codes
        are made or read. A block with None in its place is scanned by its vectors. UsageError if they are of other
        vectors.
    threads: for codes; OMP_NUM_THREADS or all processors if None. BLAS, which multiplies floats, has its own setting.
    patience: how many scans' worth of searching may pass before codes are made in memory: 0 makes them with the
        first search, math.inf never. One scan is less work than making codes, three are more.
    small: galleries of fewer numbers (rows x dim) never use codes. Above 2³¹ numbers only those given are used, so
        that memory does not grow with the gallery.
    """

    exact = True

    def __repr__(self) -> str:
        return f"<exact index of {len(self):,} vectors of {self._rows.dim} numbers>"

    def __init__(
        self,
        blocks: Sequence[Block] | Block,
        codes: Sequence[Codes | None] | None = None,
        *,
        threads: int | None = None,
        patience: float = 3,
        small: int = SMALL,
    ) -> None:
        self._rows = RowBlocks([blocks] if isinstance(blocks, np.ndarray) else blocks)
        self._coded: CodedProducts | MixedProducts | None = None
        self._threads, self._patience, self._spent, self._making = threads, patience, 0.0, Lock()
        self._codable = self._rows.dim <= WIDEST and len(self._rows) * self._rows.dim >= max(1, small) and compiled()
        if codes is not None:
            blocks = self._rows.blocks
            if len(codes) != len(blocks) or not all(c is None or c.fit(b) for c, b in zip(codes, blocks, strict=True)):
                raise UsageError("the codes are not of these vectors; delete them to have them made again")
            self._use(codes)

    @cached_property
    def _plain(self) -> PlainProducts:
        from eyespot.indexes._plain import PlainProducts

        return PlainProducts(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def codes(self) -> Sequence[Codes | None]:
        """The codes in use, one per block, None for a block without; empty before any are made."""
        return self._coded.codes if self._coded else ()

    def prepare(self) -> None:
        """Make the codes that blocks lack now, if this gallery can use any."""
        with self._making:
            if self._codable and self._lack_codes and len(self._rows) * self._rows.dim <= _LARGE:
                pairs = zip(self.codes or [None] * len(self._rows.blocks), self._rows.blocks, strict=True)
                self._use([quantise(block, self._threads) if part is None else part for part, block in pairs])

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (m, dim), best first, and their inner products; of equals the lower row.

        mask: (rows,), True where a row may be found. k' = min(k, rows let through) rows come back, never fewer.
        UsageError if k < 1, or a query is not finite or of another length.
        """
        rows, scores = self.ranked(queries, k, mask)
        with np.errstate(over="ignore"):
            return NearestRows(rows, scores.astype(np.float32))

    def ranked(self, queries: Vectors, k: int, mask: Mask | None = None) -> tuple[Ids, Reals]:
        """What `search` finds, with the scores that rows are ranked by, in double precision; (m, k') both."""
        checked, (mask, count) = queries_for(self._rows, queries), self._let_through(mask)
        k = min(positive(k), count)
        shortlists: list[Shortlist] = []
        if k and len(checked) and count <= max(_AT_ONCE // len(checked), 2 * k):
            every_row, unknown = np.arange(count) if mask is None else np.flatnonzero(mask), np.full(count, np.inf)
            shortlists = [Shortlist(every_row, -unknown, unknown)] * len(checked)
        elif k and len(checked):
            first = self._plain if mask is not None and count <= _FEW_LEFT else self._first_pass(len(checked))
            shortlists = first.scan_each(QueryBatch.of(checked, k, mask))
        answers = self._answers(checked[: len(shortlists)], shortlists, [k] * len(shortlists))
        rows = np.array([rows for rows, _ in answers], np.int64).reshape(len(checked), k)
        return rows, np.array([scores for _, scores in answers], np.float64).reshape(len(checked), k)

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """What `search` finds for each of several queries (dim,), which share scans though each has its k and mask."""
        with np.errstate(over="ignore"):
            return [NearestRows(rows, scores.astype(np.float32)) for rows, scores in self.ranked_each(requests)]

    def ranked_each(self, requests: Sequence[ScanRequest]) -> list[tuple[Ids, Reals]]:
        """What `ranked` finds for each, (1, k') both."""
        masks = {id(one.mask): self._let_through(one.mask) for one in requests}
        counts = [masks[id(one.mask)][1] for one in requests]
        requests = [one._replace(mask=masks[id(one.mask)][0]) for one in requests]
        few = [count <= max(_AT_ONCE, _FEW_LEFT, 2 * one.k) for one, count in zip(requests, counts, strict=True)]
        found = {at: self.ranked(requests[at].query[None], *requests[at][1:]) for at in np.flatnonzero(few).tolist()}
        left = [at for at in range(len(requests)) if at not in found]
        first = self._first_pass(len(left)) if left else self._plain
        some, mixed = [requests[at] for at in left], first is not self._plain
        for places in shared_scans(some, [counts[at] for at in left], len(self._rows), mixed):
            together = [some[at] for at in places]  # by one scan
            queries = queries_for(self._rows, np.stack([one.query for one in together]))
            batch = QueryBatch.each(queries, [positive(one.k) for one in together], [one.mask for one in together])
            answers = self._answers(queries, first.scan_each(batch), [one.k for one in together])
            found |= {left[at]: (rows[None], scores[None]) for at, (rows, scores) in zip(places, answers, strict=True)}
        return [found[at] for at in range(len(requests))]

    def _answers(
        self, queries: NDArray[np.float32], shortlists: Sequence[Shortlist], ks: Sequence[int]
    ) -> list[tuple[Ids, Reals]]:
        """The best rows of each query (m, dim) by its true scores; the rows of all are read from the disk together.

        The likeliest k are scored, then whatever could still beat the worst of them.
        """
        if shortlists:
            self._rows.prefetch(distinct(np.concatenate([one.rows for one in shortlists])))
        found: dict[int, tuple[Ids, Reals]] = {}
        inner: Any = getattr(sys.modules.get("eyespot.kernels.scans"), "inner", add_products)  # the same bits, sooner

        def score(at: int) -> None:
            exact, every, k = queries[at].astype(np.float64), shortlists[at], ks[at]
            order = np.argpartition(-every.high, k - 1) if 0 < k < len(every.rows) else np.arange(len(every.rows))
            likely, others = every.only(order[:k]), every.only(order[k:])
            scores = self._rows.scores(likely.rows, exact, inner)
            rest = others.rows[~(others.high < scores.min(initial=np.inf))]
            both = np.concatenate([scores, self._rows.scores(rest, exact, inner)])
            if not np.isfinite(both).all():
                raise NotFiniteVectors(NOT_FINITE)
            found[at] = rank(np.concatenate([likely.rows, rest]), both, k)

        threads = min(max(1, len(shortlists)), self._threads or default_threads())
        spread(score, range(len(shortlists)), threads)
        return [found[at] for at in range(len(shortlists))]

    def _let_through(self, mask: Mask | None) -> tuple[Mask | None, int]:
        """A mask, None where it lets all rows through, and how many these are."""
        mask, count = allowed(mask, len(self._rows)), len(self._rows)
        left = count if mask is None else int(np.count_nonzero(mask))
        return (None if left == count else mask), left

    @property
    def _lack_codes(self) -> bool:
        return not self.codes or any(part is None for part in self.codes)

    def _first_pass(self, count: int) -> PlainProducts | CodedProducts | MixedProducts:
        self._spent += 1 + count / _BATCH
        if self._lack_codes and self._spent > self._patience:
            self.prepare()
        if self._coded is None or count < _BATCH:
            return self._coded or self._plain
        from eyespot.kernels import tiles

        return self._coded if tiles.fast() else self._plain

    def _use(self, codes: Sequence[Codes | None]) -> None:
        there = [part for part in codes if part is not None]
        if self._codable and there:
            from eyespot.indexes._coded import CodedProducts, MixedProducts

            every = CodedProducts(there, self._threads) if len(there) == len(codes) else None
            self._coded = every or MixedProducts(self._rows, codes, self._threads)
