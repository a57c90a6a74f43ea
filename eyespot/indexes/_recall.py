"""How much of the nearest one approximate answer holds, estimated from what its own search saw.

A rough pass reads a code of every row and names the rows with the highest rough scores r, whose exact scores s are then
computed. So of these rows both are known: s = a + b r + e, where e has a standard deviation of sd. The choice is by r
alone, which leaves the distribution of s given r as it is for the rows just below the cut. How many rows lie there is
read off the list: it doubles from its middle to its end, and goes on doubling at that rate, up to the rows there are.
The rows that are missed are those below the cut whose s is above t, the score of the last answer:

    missed = ∫ n(r) Φ((a + b r − t) / sd) dr,    recall = k / (k + missed)

A filter needs no measurement of its own: if it removes the nearest rows, those left have nearly equal scores, b r says
little beside sd, and many lie below the cut. Too many are counted there, so the estimate errs to the low side where it
is low (docs/decisions/0014).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.rows import Reals

_STEPS = 48  # of the integral
_REACH = 6.0  # standard deviations; beyond them nothing is missed
_LEAST = 8  # rows that a line is fitted to
_DOUBLINGS = 60.0  # more are more rows than there are


def estimate_recall(rough: Reals, exact: NDArray[np.floating], last: float, k: int, left: int) -> float:
    """The share of the k nearest that is found, by the rough and exact scores of the rows that were named, (n,) both.

    last: the exact score of the k-th answer. left: how many rows there are to find, named or not. 0 where nothing can
    be concluded, as from rough scores that are all equal.
    """
    if len(rough) >= left:
        return 1.0
    spread = rough.var()
    if len(rough) < _LEAST or not spread > 0:
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
