"""The relevant hits of rankings with their ranks: all that most measures need, and far less than the rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyespot.metrics import _sums
from eyespot.metrics._ragged import Grades, Ints, Reals, counts_where

NO_CUT = 1 << 40  # a rank that no ranking reaches


@dataclass(frozen=True, eq=False)
class RelevantHits:
    """Hits of grade 1 or more by rank, under queries, and the grades of all relevant images, found or not.

    `offsets` (q + 1,), `ranks` from 1, `grades`, and the ranks of the `first` and `last` hit of equal score (found,);
    `lengths` (q,) of the rankings; `ideal_offsets` (q + 1,) and `ideal`, the grades to be found, descending.
    """

    offsets: Ints
    ranks: Ints
    grades: Grades
    first: Ints
    last: Ints
    lengths: Ints
    ideal_offsets: Ints
    ideal: Grades

    def relevant_at(self, rel: int) -> Ints:
        """How many images have this grade or more, (q,)."""
        return counts_where(self.ideal_offsets, self.ideal >= rel)

    def cuts(self, cutoff: int | None) -> Ints:
        """The same cut for every query, (q,)."""
        return np.full(len(self.lengths), NO_CUT if cutoff is None else cutoff, dtype=np.int64)

    def sum_with(self, add: Callable[..., None], cut: Ints, rel: int) -> Reals:
        """What a function of `_sums` makes of the hits up to the cut (q,), for each query, (q,)."""
        out = np.empty(len(self.lengths))  # (q,)
        add((self.offsets, self.ranks, self.grades, self.first, self.last), cut, rel, out)
        return out

    def best_with(self, add: Callable[..., None], cut: Ints, kind: int) -> Reals:
        """What a function of `_sums` makes of the ideal ranking up to the cut, (q,)."""
        out = np.empty(len(self.lengths))  # (q,)
        add((self.ideal_offsets, self.ideal), cut, kind, out)
        return out

    def hits_within(self, cut: Ints, rel: int) -> Reals:
        """How many hits of grade `rel` or more stand up to the cut, (q,)."""
        return self.sum_with(_sums.hits_within, cut, rel)


def ratio(part: Any, whole: Any) -> Reals:
    """part / whole, and 0 where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0))
