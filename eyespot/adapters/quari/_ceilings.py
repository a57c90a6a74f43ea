"""First passes: for every row a score it surely does not exceed, at a fraction of the cost of the score itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._directions import Directions
from eyespot.adapters.quari._formula import stretch
from eyespot.kernels.codes import Codes, padded, spread
from eyespot.kernels.rows import Ids, Reals, RowBlocks

Ceilings = NDArray[np.float32]

_SHARE = 1 << 15  # rows a thread takes at a time
_CHUNK = 1 << 22  # numbers looked at together


class CodedBounds:
    """Over int8 codes.

    A row is x = c + s a + e (centre, codes a, rest e) and a direction g = t p + h (whole numbers p, rest h), so x·g is
    c·g + s t (p·a) + (s a)·h + e·g. For directions together, as columns of G and H, the length of their products is
    off by at most ‖G‖ |e| + ‖H‖ |s a|, with the largest singular values of G and H.

    codes: of each block, None for one without, whose vectors `rest` reads. starts: the first row of each block.
    """

    def __init__(
        self,
        codes: Sequence[Codes | None],
        lengths: NDArray[np.float32],
        threads: int,
        starts: Ids | None = None,
        rest: PlainBounds | None = None,
    ) -> None:
        self.codes, self._lengths, self._threads, self._rest = codes, lengths, threads, rest
        self._starts = np.cumsum([0, *(len(part.codes) for part in codes if part)]) if starts is None else starts

    def ceilings(self, directions: Sequence[Directions], rows: Ids | None) -> Ceilings:
        """For each query (m, rows); all rows if None, else these in ascending order."""
        from eyespot.kernels.adapted import ceilings

        batch = _QueryBatch.of([_QuantisedQuery.of(one) for one in directions])
        found = np.empty((len(directions), self._starts[-1] if rows is None else len(rows)), np.float32)
        shares = list(self._shares(rows))
        coded = {part: codes for part in {part for part, _, _ in shares} if (codes := self.codes[part]) is not None}
        operands = {part: batch.over(codes) for part, codes in coded.items()}

        def fill(share: tuple[int, int, int]) -> None:
            part, start, stop = share
            first, codes = int(self._starts[part]), coded.get(part)
            chosen = np.arange(start, stop) if rows is None else rows[start:stop]
            if codes is None:
                assert self._rest is not None
                found[:, start:stop] = self._rest.ceilings(directions, chosen)
                return
            out = np.empty((len(directions), stop - start), np.float32)
            gallery = np.asarray(codes.codes), np.asarray(codes.bounds), self._lengths[first : first + len(codes.codes)]
            ceilings(gallery, operands[part], chosen - first, out)
            found[:, start:stop] = out

        spread(fill, shares, min(self._threads, len(shares)) or 1)
        return found

    def _shares(self, rows: Ids | None) -> Iterator[tuple[int, int, int]]:
        """Which of the rows asked for lie in which block: its number, start and stop."""
        cuts = self._starts if rows is None else np.searchsorted(rows, self._starts)
        for part, (start, stop) in enumerate(zip(cuts.tolist(), cuts[1:].tolist(), strict=False)):
            for at in range(start, stop, _SHARE):
                yield part, at, min(at + _SHARE, stop)


class PlainBounds:
    """Over the vectors themselves, in float32: nothing to build, nothing to compile."""

    def __init__(self, rows: RowBlocks, lengths: NDArray[np.float32]) -> None:
        self._rows, self._lengths = rows, lengths

    def ceilings(self, directions: Sequence[Directions], rows: Ids | None) -> Ceilings:
        """For each query (m, rows); all rows if None, else these in ascending order."""
        count = len(self._rows) if rows is None else len(rows)
        found, step = np.empty((len(directions), count), np.float32), max(1, _CHUNK // max(1, self._rows.dim))
        for start in range(0, count, step):
            chosen = np.arange(start, min(start + step, count)) if rows is None else rows[start : start + step]
            vectors, lengths = self._rows.gather(chosen), self._lengths[chosen].astype(np.float64)
            for j, one in enumerate(directions):
                columns, spans = columns_of(one)
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    products = (vectors @ columns.T.astype(np.float32)).astype(np.float64)  # (n, c)
                    float32_found: Ceilings = bounded(one, products, lengths, spans, np).astype(np.float32)
                found[j, start : start + step] = float32_found
        return found


def columns_of(one: Directions) -> tuple[Reals, Reals]:
    """What vectors are multiplied by, (c, dim), and how long each is, with what float32 rounds off it, (c,)."""
    columns = np.concatenate([one.direction[None], one.kept, one.owed])
    return columns, np.linalg.norm(columns, axis=1) + 2.0**-24 * one.size


def bounded(one: Directions, products: Any, lengths: Any, spans: Any, xp: Any) -> Any:
    """What scores do not exceed, (n,), by products (n, c) that float32 rounded in any order.

    products, lengths and spans are float64 arrays of `xp`, which is numpy or torch.
    """
    dim, many = len(one.direction), 1 + len(one.kept)
    error = (dim + 8) * 2.0**-23 * lengths[:, None] * spans + dim * 2.0**-100 * (1 + lengths[:, None])
    top = (products[:, 0] + error[:, 0]).clip(0)
    gain, owed = (
        (products[:, part] ** 2).sum(1) ** 0.5 + sign * (error[:, part] ** 2).sum(1) ** 0.5
        for part, sign in ((slice(1, many), -1), (slice(many, None), 1))
    )
    form = _form(one, dim)
    rest = form[1] * lengths**2 + gain.clip(0) ** 2 - owed**2 - lengths * (form[2] * lengths + form[3])
    whole = one.own * top**2 + rest.clip(0)
    found = xp.where(whole > top**2, top / whole**0.5, xp.where(top == 0, 0.0, 1.0))
    return xp.where(xp.isfinite(products).all(1), found * (1 + 1e-6) + 1e-9, 1.0)


def _form(one: Directions, dim: int) -> list[float]:
    """own, floor, slack and vanished of the kernel, for lengths that may be too long by as much as they are."""
    short = (1 - dim * 2.0**-21) ** 2 if one.floor > 0 else 1.0
    return [one.own, one.floor * short, one.slack, dim**0.5 * 2.0**-57 * abs(one.floor)]


class _QuantisedQuery(NamedTuple):
    """The directions of one query in whole numbers of 16 bits: step · whole + left."""

    columns: Reals  # (c, dim), the same without rounding
    whole: Reals  # (c, dim)
    steps: Reals  # (c,)
    parts: Reals  # (c, 3), 1 in the place of what a column belongs to: the top, what is kept, what is owed
    form: list[float]  # own, floor, slack, vanished
    errors: list[tuple[float, float, float]]  # of each part: per |e|, per |s a|, per |c|

    @classmethod
    def of(cls, one: Directions) -> _QuantisedQuery:
        columns = np.concatenate([one.direction[None], one.kept, one.owed])  # (c, dim)
        steps = np.abs(columns).max(axis=1, initial=0) / 32767
        steps[steps == 0] = 1
        whole = np.rint(columns / steps[:, None])
        left = columns - steps[:, None] * whole
        parts = np.repeat(np.eye(3), (1, len(one.kept), len(one.owed)), axis=0)
        errors = []
        for mine in parts.T > 0:
            error_columns = columns[mine]
            error_left = left[mine]
            # How far the products may be off: per |e|, per |s a|, per |c|; double precision loses some of
            # each too
            rounding = (error_columns.shape[1] + 16) * 2.0**-50 * (float(np.linalg.norm(error_columns)) + one.size)
            error = stretch(error_columns) + rounding, stretch(error_left) + rounding, 2 * rounding
            errors.append(error)
        return cls(columns, whole, steps, parts, _form(one, columns.shape[1]), errors)

    def forms(self, far: float) -> list[float]:
        """The kernel's form, for codes whose centre is so far out."""
        return [*self.form, *(term for near, whole, spare in self.errors for term in (near, whole, spare * far))]


class _QueryBatch(NamedTuple):
    """Queries in groups of columns, as the kernel takes them."""

    queries: Sequence[_QuantisedQuery]
    columns: NDArray[np.uint8]  # (g, width / 4, LANES, 4)
    group: int  # columns of one group

    @classmethod
    def of(cls, queries: Sequence[_QuantisedQuery]) -> _QueryBatch:
        from eyespot.kernels.adapted import COLUMNS

        each = -(-max(len(one.whole) for one in queries) // COLUMNS) * COLUMNS
        whole = np.zeros((len(queries), each, padded(queries[0].whole.shape[1])))
        for j, one in enumerate(queries):
            whole[j, : len(one.whole), : one.whole.shape[1]] = one.whole
        return cls(queries, _bytes(whole.reshape(-1, COLUMNS, whole.shape[2])), COLUMNS)

    def over(self, codes: Codes) -> tuple[NDArray[Any], ...]:
        """What the kernel takes for these codes."""
        centre = codes.centre.astype(np.float64)
        terms = np.zeros((len(self.queries), len(self.columns) // len(self.queries) * self.group, 5))
        for j, one in enumerate(self.queries):
            terms[j, : len(one.steps)] = np.column_stack([one.columns @ centre, one.steps, one.parts])
        forms = np.array([one.forms(float(np.linalg.norm(centre))) for one in self.queries])
        return self.columns, np.ascontiguousarray(terms.reshape(-1, self.group, 5).swapaxes(1, 2)), forms


def _bytes(whole: Reals) -> NDArray[np.uint8]:
    """Columns of whole numbers (g, COLUMNS, width) as the kernel takes them, (g, width / 4, LANES, 4)."""
    raised = whole.astype(np.int64) + (1 << 15)
    both = np.concatenate([raised >> 8, raised & 255], axis=1).astype(np.uint8)  # (g, LANES, width)
    return np.ascontiguousarray(both.reshape(*both.shape[:2], -1, 4).swapaxes(1, 2))
