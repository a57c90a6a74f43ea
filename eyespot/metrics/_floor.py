"""How much of a number is luck: what a ranking in random order scores, and what the order of equal scores moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics._aligned import Aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import RankingPool, Reals
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
        values = measure.expected(_pool_of(measure, rankings, pool))
    except NotImplementedError:
        return simulated_floor(measure, rankings, pool)
    return Floor(_mean(values), 0.0, True, values)


def simulated_floor(
    measure: Measure, rankings: Aligned, pool: Any = None, rounds: int = ROUNDS, seed: int = 0
) -> Floor:
    """The same from random orders; the same seed gives the same floor."""
    drawn, rng = _pool_of(measure, rankings, pool), np.random.default_rng(seed)
    total, means = np.zeros(len(rankings.queries)), np.empty(rounds)
    for turn in range(rounds):
        values = measure.score(drawn.shuffled(rng))
        total += values
        means[turn] = _mean(values)
    return Floor(_mean(total / rounds), float(means.std(ddof=1) / np.sqrt(rounds)), False, total / rounds)


def _pool_of(measure: Measure, rankings: Aligned, size: Any) -> RankingPool:
    """The pool of each query. `size`: its images, an int or (q,), all relevant ones included; None: its own ranking."""
    if measure.name == "Judged":
        raise UsageError("Judged@k has no random floor: it says nothing of relevance")
    if measure.judged_only and size is not None:
        raise UsageError(f"{measure} ranks judged images only; its floor is that of the rankings' own judged images")
    rankings = rankings.judged_only() if measure.judged_only else rankings
    ideal = rankings.ideal_offsets, rankings.ideal
    if size is None:
        found, ranked = rankings.relevant_hits, rankings.lengths
        query = np.repeat(np.arange(len(ranked)), np.diff(found.offsets))
        return RankingPool(ranked, found.offsets, found.grades[np.lexsort((-found.grades, query))], *ideal)
    sizes = np.broadcast_to(np.asarray(size, np.int64), len(rankings.queries)).copy()  # (q,)
    short = np.flatnonzero(sizes < rankings.relevant)
    if len(short):
        name, n, r = rankings.queries[short[0]], sizes[short[0]], rankings.relevant[short[0]]
        raise UsageError(f"a pool of {n} images cannot hold the {r} that are relevant to query {name!r}")
    return RankingPool(sizes, *ideal, *ideal)


def _mean(values: Reals) -> float:
    return float(values.mean()) if len(values) else float("nan")


def tied_queries(rankings: Aligned) -> NDArray[np.bool_]:
    """Which queries have a relevant image that shares its score with another one, (q,)."""
    found = rankings.relevant_hits
    query = np.repeat(np.arange(len(rankings.queries)), np.diff(found.offsets))
    marked = np.zeros(len(rankings.queries), bool)
    marked[query[found.last > found.first]] = True
    return marked


def tie_range(measure: Measure, rankings: Aligned) -> tuple[Reals, Reals]:
    """The value of each query in the worst and in the best order of equal scores, (q,) each.

    They are one where no order of equals counts: without equals, and where a measure averages over them and its cut
    parts none.
    """
    worst = measure(rankings)
    best, marked = worst.copy(), tied_queries(rankings)
    if marked.any():
        few = rankings.take(marked)
        new = np.ones(len(few.scores), np.int64)  # where a query or another score begins, (hits,)
        new[1:] = np.diff(few.scores) != 0
        new[few.offsets[:-1]] = 1
        ties = np.cumsum(new)
        # The relevant last or first among equal scores
        orders = (np.lexsort((sign * few.grades, ties)) for sign in (1, -1))
        worst[marked], best[marked] = (measure(replace(few, grades=few.grades[order])) for order in orders)
    return worst, best
