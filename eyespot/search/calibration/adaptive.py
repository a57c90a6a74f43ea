"""Where further verdicts tell most of how many relevant pictures a ranking holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eyespot.search.calibration import _chain
from eyespot.search.calibration.curve import Curve
from eyespot.types import UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

NONE = 1e-12  # of a variance: what nobody doubts is still not divided by


def next_ranks(curve: Curve, n: int, k: int | None = None) -> Ints:
    """The n ranks to judge next, ascending, or fewer where fewer are left; `Curve.joined` takes their verdicts.

    Each verdict goes to the stratum where it is expected to lessen the variance of `count(k)` most; within the stratum
    every hit without a verdict has the same chance, also one beyond k. Raises `UsageError` for an n below 0.
    """
    if n < 0:
        raise UsageError("the number of further verdicts is 0 or more")
    # How many more hits of each stratum to judge, (strata,): one at a time to where it is worth most
    unjudged = np.setdiff1d(np.arange(1, curve.within(k) + 1), curve.sample.ranks)
    free = np.bincount(curve.sample.stratum_of(unjudged), minlength=len(curve.sample.sizes))  # (strata,)
    wanted, worth = np.zeros_like(free), _Worth(curve, unjudged)
    for _ in range(min(n, len(unjudged))):
        wanted[np.argmax(np.where(wanted < free, worth(wanted), -1))] += 1
    rng = np.random.default_rng([curve.seed, len(curve.sample.ranks), n])
    return curve.sample.drawn(wanted, rng)


class _Worth:
    """By how much one more verdict on each stratum lessens the variance of the count, (strata,)."""

    def __init__(self, curve: Curve, unjudged: Ints) -> None:
        # (strata, cells)
        # How many of these ranks lie in each cell of each stratum, (strata, cells)
        cells = _chain.cells(curve.hits)
        weight = np.zeros((len(curve.sample.sizes), int(cells[-1]) + 1))
        np.add.at(weight, (curve.sample.stratum_of(unjudged), cells[unjudged - 1]), 1.0)
        self.free = weight.sum(axis=1)
        shares = weight @ curve.posterior.share / np.maximum(self.free, 1)[:, None]  # (strata, draws)
        self.mean = shares.mean(axis=1)
        self.spread = np.maximum(self.mean * (1 - self.mean), NONE)  # of one picture
        self.before = self.spread / np.maximum(shares.var(axis=1), NONE)  # verdicts that what is known is worth
        share = self.mean
        # What a verdict of this judge tells of a share, as a part of what a perfect one would, (strata,)
        accuracy = curve.accuracy
        yes = accuracy.sensitivity * share + (1 - accuracy.specificity) * (1 - share)
        part: Reals = accuracy.lift**2 * share * (1 - share) / np.maximum(yes * (1 - yes), NONE)
        self.each = part

    def __call__(self, wanted: Ints) -> Reals:
        known = self.before + wanted * self.each
        gain: Reals = self.free**2 * self.spread * (1 / known - 1 / (known + self.each))
        return gain
