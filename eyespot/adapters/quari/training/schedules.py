"""Learning rates as a share of the highest one; each depends on the step alone, so there is no state to keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class ScheduleStep(NamedTuple):
    """A step, from 0, of so many in all and so many an epoch."""

    step: int
    total: int
    per_epoch: int


def one_cycle(at: ScheduleStep) -> float:
    """From 1/25 up to 1 in the first hundredth of the training, then down to 1/500, both along a cosine.

    The authors' code: 2e-5, 5e-4 and 1e-6.
    """
    peak = max(1, round(0.01 * at.total))
    if at.step < peak:
        return _between(1 / 25, 1.0, at.step / peak)
    return _between(1.0, 1 / 500, min(1.0, (at.step - peak) / max(1, at.total - 1 - peak)))


def cosine(at: ScheduleStep) -> float:
    """From 1 to 1/50 and back along a cosine, over and over (QuARI, section 3.3: 1e-5 and 2e-7).

    The paper does not say how long a cycle is; here it goes down in one epoch and up in the next.
    """
    return 1 / 50 + (1 - 1 / 50) * (1 + math.cos(math.pi * at.step / max(1, at.per_epoch))) / 2


class Schedule(NamedTuple):
    """A course and its published highest rate."""

    share: Callable[[ScheduleStep], float]
    peak: float


SCHEDULES = {"one-cycle": Schedule(one_cycle, 5e-4), "cosine": Schedule(cosine, 1e-5)}


def _between(start: float, end: float, done: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2
