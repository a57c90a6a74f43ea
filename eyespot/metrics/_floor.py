"""The random floor: what a ranking in random order scores, so that a number can be read against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eyespot.metrics._aligned import Aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._pool import RankingPool, pool_of
from eyespot.metrics._ragged import Reals
from eyespot.types import UsageError

ROUNDS = 1000


@dataclass(frozen=True, eq=False)
class Floor:
    """`values` (q,) to expect of each query, and their `mean` with its standard `error`, 0 if `exact`."""

    mean: float
    error: float
    exact: bool
    values: Reals


def floor(measure: Measure, rankings: Aligned, pool: Any = None) -> Floor:
    """What a random order of the pool scores: by formula where the measure has one, else simulated.

    `pool`: how many images each query ranks, an int or (q,), all relevant ones among them; None: its own ranking, as
    in a task with candidates.
    """
    try:
        values = measure.expected(_pool(measure, rankings, pool))
    except NotImplementedError:
        return simulated_floor(measure, rankings, pool)
    return Floor(_mean(values), 0.0, True, values)


def simulated_floor(
    measure: Measure, rankings: Aligned, pool: Any = None, rounds: int = ROUNDS, seed: int = 0
) -> Floor:
    """The same from random orders; the same seed gives the same floor."""
    drawn, rng = _pool(measure, rankings, pool), np.random.default_rng(seed)
    total, means = np.zeros(len(rankings.queries)), np.empty(rounds)
    for turn in range(rounds):
        values = measure.score(drawn.shuffled(rng))
        total += values
        means[turn] = _mean(values)
    return Floor(_mean(total / rounds), float(means.std(ddof=1) / np.sqrt(rounds)), False, total / rounds)


def _pool(measure: Measure, rankings: Aligned, pool: Any) -> RankingPool:
    if measure.name == "Judged":
        raise UsageError("Judged@k has no random floor: it says nothing of relevance")
    if measure.judged_only and pool is not None:
        raise UsageError(f"{measure} ranks judged images only; its floor is that of the rankings' own judged images")
    return pool_of(rankings.judged_only() if measure.judged_only else rankings, pool)


def _mean(values: Reals) -> float:
    return float(values.mean()) if len(values) else float("nan")
