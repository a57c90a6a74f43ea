"""How much of a number is the order in which equal scores happen to stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eyespot.metrics._aligned import Aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._ragged import Ints, Reals


def tie_spread(measure: Measure, rankings: Aligned) -> Reals:
    """Between the best and the worst order of equal scores, the difference in each query's value, (q,).

    0 where no order of equals counts: without equals, and where a measure averages over them and its cut parts none.
    """
    spread = np.zeros(len(rankings.queries))  # (q,)
    group = _groups(rankings)
    query = np.repeat(np.arange(len(rankings.queries)), rankings.lengths)  # (hits,)
    tied = np.zeros(len(rankings.queries), bool)  # (q,)
    tied[query[1:][np.diff(group) == 0]] = True
    if not tied.any():
        return spread
    few = rankings.take(tied)
    best, worst = (measure(_ordered(few, sign)) for sign in (-1, 1))
    spread[tied] = np.abs(best - worst)
    return spread


def _ordered(rankings: Aligned, sign: int) -> Aligned:
    """The rankings with the relevant first (-1) or last (1) among equal scores."""
    order = np.lexsort((sign * rankings.grades, _groups(rankings)))
    return replace(rankings, grades=rankings.grades[order])


def _groups(rankings: Aligned) -> Ints:
    """The same number for neighbours of one query with equal scores, (hits,)."""
    new = np.ones(len(rankings.scores), np.int64)
    new[1:] = np.diff(rankings.scores) != 0
    new[rankings.offsets[:-1][rankings.lengths > 0]] = 1
    return np.asarray(np.cumsum(new))
