"""The rows that a search under an adapted query has not ruled out yet."""

from __future__ import annotations

import numpy as np

from eyespot.adapters.quari._ceilings import Ceilings
from eyespot.kernels.rows import Ids
from eyespot.types import Mask

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
        found = np.flatnonzero(self.ceilings >= _cut(self.ceilings, 2 * count))
        if len(found) < count:
            found = np.flatnonzero(self.ceilings >= np.partition(self.ceilings, -count)[-count])
        return np.sort(found[np.argpartition(-self.ceilings[found], count - 1)[:count]])

    def reaching(self, floor: float, seen: Ids = _NONE) -> RowsLeft:
        """Those whose ceiling reaches the floor, less those at some places."""
        reach = self.ceilings >= np.float32(floor - 1e-7)
        reach[seen] = False
        places = np.flatnonzero(reach)
        return RowsLeft(self.numbers(places), self.ceilings[places])


def _cut(ceilings: Ceilings, count: int) -> float:
    """A value that about `count` of the ceilings reach, from a part of them."""
    some = ceilings[:: max(1, len(ceilings) >> 14)]
    rank = max(1, -(-count * len(some) // len(ceilings)))
    return float(np.sort(some)[-rank]) if rank < len(some) else -np.inf  # partitions of some such data take 10 ms
