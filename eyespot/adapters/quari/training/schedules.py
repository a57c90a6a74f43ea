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

    The authors' code: 2e-5, 5e-4 and 1e-6, at the steps of torch's OneCycleLR.
    """
    return _cycle(at, 1 / 25, 1.0, 1 / 500)


def cycled_beta(at: ScheduleStep) -> float:
    """AdamW's β₁ in a one-cycle, which torch's OneCycleLR turns the other way round by default: .95, .85, .95."""
    return _cycle(at, 0.95, 0.85, 0.95)


def cosine(at: ScheduleStep) -> float:
    """From 1 to 1/50 and back along a cosine, over and over (QuARI, section 3.3: 1e-5 and 2e-7).

    The paper does not say how long a cycle is; here it goes down in one epoch and up in the next.
    """
    return 1 / 50 + (1 - 1 / 50) * (1 + math.cos(math.pi * at.step / max(1, at.per_epoch))) / 2


class Schedule(NamedTuple):
    """A course, its published highest rate, and the course of AdamW's β₁ (None: it stays at .9)."""

    share: Callable[[ScheduleStep], float]
    peak: float
    beta: Callable[[ScheduleStep], float] | None = None


SCHEDULES = {"one-cycle": Schedule(one_cycle, 5e-4, cycled_beta), "cosine": Schedule(cosine, 1e-5)}


def _cycle(at: ScheduleStep, first: float, peak: float, last: float) -> float:
    top = 0.01 * at.total - 1  # torch counts the peak from 0, and between steps where the hundredth is no whole step
    if at.step <= top:
        return _between(first, peak, at.step / top if top else 1.0)
    return _between(peak, last, min(1.0, (at.step - top) / (at.total - 1 - top)))


def _between(start: float, end: float, done: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2
