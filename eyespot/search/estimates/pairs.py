"""Two groups beside each other: by how much they differ, whether that can be claimed, how many more looks it takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.search.calibration.curve import LEVEL, Interval

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

POWER = 2.8  # standard errors between 0 and a difference that is found with power .8 at 95 %
SURE = 0.99  # how probable the side of each claim is by the shared curve, where many pairs are looked through
ALIKE = 1.1  # a factor between two parts of groups that were looked at: up to here shares are comparable


@dataclass(frozen=True)
class GroupPair:
    """Two groups: the difference and the ratio of their rates, first to second.

    Where nothing relevant was seen in a group only one end of the ratio is known. `apart` is 1 or -1 where the interval
    of the difference is above or below 0, and 0 else; `apart_together` is the claim that holds beside those of all
    other pairs. `needed` is between how many looks in both groups, in all, a difference of this size is told apart at
    (power .8), `inf` where no number of looks does it or no upper end is known; None below 30 looks in a group.
    """

    first: Any
    second: Any
    difference: Interval
    ratio: Interval
    apart: int
    apart_together: int
    needed: tuple[float, float] | None

    @property
    def turned(self) -> GroupPair:
        """The same, second to first."""
        d, r = self.difference, self.ratio
        ratio = Interval(1 / r.median, 1 / r.high if r.high else inf, 1 / r.low if r.low else inf)
        claims = -self.apart, -self.apart_together
        return GroupPair(self.second, self.first, Interval(-d.median, -d.high, -d.low), ratio, *claims, self.needed)


def looks_needed(difference: float, *, of_looks: float, of_photos: float, looks: int, units: int) -> float:
    """How many looks in all tell two shares with this difference apart, with power .8 at 95 %; `inf` if none do.

    `of_looks` is the variance that `looks` looks leave and more of them lessen, `of_photos` that which stays because
    the photos are a sample themselves; `units` in both groups.
    """
    room = (difference / POWER) ** 2 - of_photos
    if room <= 0:
        return inf
    return units / (1 + room / max(of_looks, 1e-12) * (units - looks) / looks) if looks < units else float(units)


def advised(share: Reals, units: Ints, looks: Ints) -> tuple[float, float]:
    """The same as a range, from both ends of the 80 % interval of the difference; share (2, draws) of both groups."""
    difference, mean = share[0] - share[1], share.mean(axis=1)
    variance = {"of_looks": float(difference.var()), "of_photos": float((mean * (1 - mean) / units).sum())}
    low, high = np.quantile(difference, (0.1, 0.9))
    every: dict[str, Any] = {"looks": int(looks.sum()), "units": int(units.sum()), **variance}
    least = looks_needed(max(abs(low), abs(high)), **every)
    return least, inf if low <= 0 <= high else looks_needed(min(abs(low), abs(high)), **every)


def surest(sides: Ints, differences: Reals) -> Ints:
    """Which sides (pairs,) can be claimed beside each other by draws of the differences (pairs, draws); 0 for the rest.

    Each is right with 99 %. The surest come first, for as long as all of them are right at once with 95 %.
    """
    right = differences * sides[:, None] > 0
    sure = right.mean(axis=1)
    order = np.argsort(-sure, kind="stable")
    at_once = np.logical_and.accumulate(right[order]).mean(axis=1)
    claimed = order[(at_once >= LEVEL) & (sure[order] >= SURE)]
    return np.where(np.isin(np.arange(len(sides)), claimed), sides, 0)


def bands(draws: Reals, units: Ints) -> Reals:
    """Ends of the counts of all groups that hold together with 95 %, (2, groups); draws (groups, n), units (groups,).

    The largest deviation in log-odds over all groups (Besag et al. 1995), and never narrower than each interval.
    """
    odds = np.log((draws + 0.5) / (units[:, None] - draws + 0.5))
    mean, spread = odds.mean(axis=1), odds.std(axis=1) + 1e-9
    largest = np.quantile((np.abs(odds - mean[:, None]) / spread[:, None]).max(axis=0), LEVEL)
    ends = 1 / (1 + np.exp(-(mean + np.array([[-1], [1]]) * largest * spread)))  # (2, groups)
    low, high = ends * (units + 1) - 0.5
    alone = [Interval.of(one) for one in draws]
    low = np.minimum(np.floor(low + 1e-6), [one.low for one in alone]).clip(0)
    return np.stack([low, np.maximum(np.ceil(high - 1e-6), [one.high for one in alone]).clip(None, units)])
