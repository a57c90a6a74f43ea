"""First passes: for every row a score it surely does not exceed, at a fraction of the cost of the score itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

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
        from eyespot.kernels.adapted_bounds import ceilings

        batch = _QueryBatch.of([quantised(one) for one in directions])
        found = np.empty((len(directions), self._starts[-1] if rows is None else len(rows)), np.float32)
        cuts = (self._starts if rows is None else np.searchsorted(rows, self._starts)).tolist()
        shares = [  # which of the rows are in which block: its number, start and stop
            (part, at, min(at + _SHARE, stop))
            for part, (start, stop) in enumerate(pairwise(cuts))
            for at in range(start, stop, _SHARE)
        ]
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
    columns = np.concatenate([one.direction[None], one.gains, one.debts])
    return columns, np.linalg.norm(columns, axis=1) + 2.0**-24 * one.size


def bounded(one: Directions, products: Any, lengths: Any, spans: Any, xp: Any) -> Any:
    """What scores do not exceed, (n,), by products (n, c) that float32 rounded in any order.

    products, lengths and spans are float64 arrays of `xp`, which is numpy or torch.
    """
    dim, many = len(one.direction), 1 + len(one.gains)
    error = (dim + 8) * 2.0**-23 * lengths[:, None] * spans + dim * 2.0**-100 * (1 + lengths[:, None])
    top = (products[:, 0] + error[:, 0]).clip(0)
    gain, debt = (
        (products[:, part] ** 2).sum(1) ** 0.5 + sign * (error[:, part] ** 2).sum(1) ** 0.5
        for part, sign in ((slice(1, many), -1), (slice(many, None), 1))
    )
    form = _form(one, dim)
    rest = form[1] * lengths**2 + gain.clip(0) ** 2 - debt**2 - lengths * (form[2] * lengths + form[3])
    whole = one.own * top**2 + rest.clip(0)
    found = xp.where(whole > top**2, top / whole**0.5, xp.where(top == 0, 0.0, 1.0))
    return xp.where(xp.isfinite(products).all(1), found * (1 + 1e-6) + 1e-9, 1.0)


def _form(one: Directions, dim: int) -> list[float]:
    """own, floor, slack and vanished of the kernel, for lengths that may be too long by as much as they are."""
    short = (1 - dim * 2.0**-21) ** 2 if one.floor > 0 else 1.0
    return [one.own, one.floor * short, one.slack, dim**0.5 * 2.0**-57 * abs(one.floor)]


@dataclass(frozen=True, eq=False)
class _QuantisedQuery:
    """The directions of one query in whole numbers: step · whole + left, 16 bits for its own, 8 for the others."""

    columns: Reals  # (c, dim), the same without rounding
    lanes: NDArray[np.uint8]  # (1 + c, dim): the high and the low byte of the first, then the others above 128
    steps: Reals  # (1 + c,)
    shifts: Reals  # (1 + c,), how far the bytes are above their values
    parts: Reals  # (1 + c, 3), 1 in the place of what a lane belongs to: the top, gains, debts
    form: list[float]  # own, floor, slack, vanished
    errors: list[tuple[float, float, float]]  # of each part: per |e|, per |s a|, per |c|

    @classmethod
    def of(cls, one: Directions) -> _QuantisedQuery:
        columns = np.concatenate([one.direction[None], one.gains, one.debts])  # (c, dim)
        most = np.where(np.arange(len(columns)), 127, 32767)
        steps = np.abs(columns).max(axis=1, initial=0) / most
        steps[steps == 0] = 1
        whole = np.rint(columns / steps[:, None])
        left = columns - steps[:, None] * whole
        parts = np.repeat(np.eye(3), (1, len(one.gains), len(one.debts)), axis=0)
        errors = []
        for mine in parts.T > 0:
            # How far the products of a part may be off; double precision loses some of each
            rounding = (columns.shape[1] + 16) * 2.0**-50 * (float(np.linalg.norm(columns[mine])) + one.size)
            errors.append((stretch(columns[mine]) + rounding, stretch(left[mine]) + rounding, 2 * rounding))
        twice = np.maximum(np.arange(len(columns) + 1) - 1, 0)  # the first column has two lanes
        shifts = np.where(np.arange(len(twice)) == 1, 0.0, 128.0)
        scaled = np.concatenate([[256 * steps[0]], steps])
        first = whole[:1].astype(np.int64) + (1 << 15)
        lanes = np.concatenate([first >> 8, first & 255, whole[1:] + 128]).astype(np.uint8)
        return cls(columns, lanes, scaled, shifts, parts[twice], _form(one, columns.shape[1]), errors)

    def forms(self, far: float) -> list[float]:
        """The kernel's form, for codes whose centre is so far out."""
        return [*self.form, *(term for near, whole, spare in self.errors for term in (near, whole, spare * far))]

    def terms(self, centre: Reals) -> Reals:
        """What the kernel makes of each lane, (6, 1 + c): offset, step, shift and the three parts."""
        offsets = self.columns @ centre
        return np.stack([np.concatenate([offsets[:1], [0.0], offsets[1:]]), self.steps, self.shifts, *self.parts.T])


@dataclass(frozen=True, eq=False)
class _QueryBatch:
    """Queries in groups of lanes, as the kernel takes them."""

    queries: Sequence[_QuantisedQuery]
    columns: NDArray[np.uint8]  # (g, width / 4, LANES, 4), or (g, FEW, width / 4, 4)
    group: int  # LANES or FEW

    @classmethod
    def of(cls, queries: Sequence[_QuantisedQuery]) -> _QueryBatch:
        from eyespot.kernels.lanes import FEW, LANES

        most = max(len(one.lanes) for one in queries)
        group = FEW if most <= FEW else LANES
        each = -(-most // group) * group
        whole = np.zeros((len(queries), each, padded(queries[0].lanes.shape[1])), np.uint8)
        for j, one in enumerate(queries):
            whole[j, : len(one.lanes), : one.lanes.shape[1]] = one.lanes
        fours = whole.reshape(-1, group, whole.shape[2] // 4, 4)
        return cls(queries, fours if group == FEW else np.ascontiguousarray(fours.swapaxes(1, 2)), group)

    def over(self, codes: Codes) -> tuple[NDArray[Any], ...]:
        """What the kernel takes for these codes."""
        groups, lanes = len(self.columns), self.group
        centre = codes.centre.astype(np.float64)
        terms = np.zeros((len(self.queries), 6, groups // len(self.queries) * lanes))
        for j, one in enumerate(self.queries):
            terms[j, :, : len(one.lanes)] = one.terms(centre)
        forms = np.array([one.forms(float(np.linalg.norm(centre))) for one in self.queries])
        by_group = terms.reshape(len(self.queries), 6, -1, lanes).swapaxes(1, 2).reshape(groups, 6, lanes)
        return self.columns, np.ascontiguousarray(by_group), forms


@lru_cache(maxsize=8)
def quantised(one: Directions) -> _QuantisedQuery:
    """In whole numbers, once for all stages that use them."""
    return _QuantisedQuery.of(one)
