"""Where the search for each adapted query stands: its task, the rows that are not ruled out yet, and the best so far.

Queries share a reading of the codes, each with its own k and mask: each finds what it would alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eyespot.adapters.quari._ceilings import Ceilings
from eyespot.adapters.quari._formula import Formula
from eyespot.kernels.rows import Ids, Reals, RowBlocks, positive
from eyespot.types import Mask, ScanRequest

_TOGETHER = 4  # queries that share one reading of the codes
_NARROW = 4  # a mask that lets fewer than one row in so many through shares no reading with others
TIE = 1e-13  # scores that differ by less are equal: it is what float64 rounds off
_NONE = np.empty(0, np.int64)


class RowsLeft:
    """Rows that may be among the best, and what their scores do not exceed."""

    def __init__(self, rows: Ids | None, ceilings: Ceilings) -> None:
        self.rows, self.ceilings = rows, ceilings

    def among(self, mask: Mask | None) -> RowsLeft:
        """Those that a mask lets through."""
        if mask is None:
            return self
        numbers = self.numbers()
        own = mask[numbers]
        return self if own.all() else RowsLeft(numbers[own], self.ceilings[own])

    def numbers(self, which: Ids | None = None) -> Ids:
        """The numbers of the rows, or of those at some places."""
        if self.rows is None:
            return np.arange(len(self.ceilings)) if which is None else which
        return self.rows if which is None else self.rows[which]

    def likeliest(self, count: int) -> Ids:
        """The places of the `count` rows of the highest ceilings, ascending; all there are if those are fewer."""
        if len(self.ceilings) <= count:
            return np.arange(len(self.ceilings))
        some = self.ceilings[:: max(1, len(self.ceilings) >> 14)]  # partitions of some such data take 10 ms
        rank = max(1, -(-2 * count * len(some) // len(self.ceilings)))
        cut = float(np.sort(some)[-rank]) if rank < len(some) else -np.inf  # about 2 · count of the ceilings reach it
        found = np.flatnonzero(self.ceilings >= cut)
        if len(found) < count:
            found = np.flatnonzero(self.ceilings >= np.partition(self.ceilings, -count)[-count])
        return np.sort(found[np.argpartition(-self.ceilings[found], count - 1)[:count]])

    def reaching(self, floor: float, seen: Ids = _NONE) -> RowsLeft:
        """Those whose ceiling reaches the floor, less those at some places."""
        reach = self.ceilings >= np.float32(floor - 1e-7)
        reach[seen] = False
        places = np.flatnonzero(reach)
        return RowsLeft(self.numbers(places), self.ceilings[places])


class Tally:
    """Rows scored so far; `floor`: k of them score at least so much, ties aside."""

    def __init__(self, k: int) -> None:
        self.k, self.rows, self.scores, self.floor = k, np.empty(0, np.int64), np.empty(0), -np.inf

    def add(self, rows: Ids, scores: Reals) -> None:
        self.rows, self.scores = np.concatenate([self.rows, rows]), np.concatenate([self.scores, scores])
        if len(self.scores) >= self.k:
            self.floor = float(np.partition(self.scores, -self.k)[-self.k]) - TIE

    def trim(self) -> None:
        """Forget what fell below the floor."""
        keep = self.scores >= self.floor
        self.rows, self.scores = self.rows[keep], self.scores[keep]

    def best(self) -> tuple[Ids, Reals]:
        """The k best, best first; of scores that rounding alone tells apart, the lower row."""
        order = np.argsort(-self.scores, kind="stable")
        steps = -np.diff(self.scores[order], prepend=self.scores[order[:1]])
        order = order[np.lexsort((self.rows[order], np.cumsum(steps > TIE)))][: self.k]
        return self.rows[order], self.scores[order]


@dataclass
class AdaptedTask:
    """One query: its formula, k, mask (rows,), how many rows that lets through, and the best rows so far."""

    formula: Formula
    k: int
    mask: Mask | None
    count: int
    tally: Tally

    @classmethod
    def of(cls, request: ScanRequest, rows: RowBlocks) -> AdaptedTask:
        """`UsageError` for a query that does not fit the vectors."""
        count = len(rows) if request.mask is None else int(np.count_nonzero(request.mask))
        dim = rows.dim if len(rows) else len(request.query.query)
        k = min(positive(request.k), count)
        return cls(Formula.of(request.query, dim), k, request.mask, count, Tally(k))


def shared_readings(tasks: Sequence[AdaptedTask], rows: int, mixed: bool) -> Iterator[list[AdaptedTask]]:
    """Those of one mask share a reading; where codes are read (`mixed`), those of several wide masks do too.

    Only codes give a row the same bound whichever rows stand beside it, so that each goes on as if it were alone.
    """
    groups: dict[int, list[AdaptedTask]] = {}
    for task in tasks:
        wide = mixed and task.count * _NARROW >= rows
        groups.setdefault(0 if wide else id(task.mask), []).append(task)
    for same in groups.values():
        yield from (same[start : start + _TOGETHER] for start in range(0, len(same), _TOGETHER))


def union(masks: Sequence[Mask | None]) -> Mask | None:
    """The rows that any of the masks lets through; None for all."""
    whole = masks[0]
    for mask in masks[1:]:
        if whole is None or mask is None:
            return None
        whole = whole if mask is whole else whole | mask
    return whole
