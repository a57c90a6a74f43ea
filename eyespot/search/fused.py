"""Several rankings of the same queries to one: by their ranks (RRF), or by scores on one scale (CombSUM, CombMNZ).

    Fusion("rrf")([first, second])
    Fusion("combsum", "z", weights=(2, 1))([first, second])

RRF is that of Cormack, Clarke and Büttcher (SIGIR 2009): an image gains weight / (k + rank) from every run that ranks
it. CombSUM and CombMNZ are Fox and Shaw's (TREC-2): the sum of its scores, and that times the number of runs that rank
it. Within each query a run's lowest hit counts 0, as does an image that the run does not rank; `z` measures from there
in standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics import Measure, evaluate
from eyespot.types import Qrels, Query, RankedImage, Run, Stage, UsageError

WAYS, NORMS = ("rrf", "combsum", "combmnz"), ("min-max", "z")
STEPS, TRIES = 20, 300  # weights are tried in steps of 1/20, or coarser ones that give at most so many tries


@dataclass(frozen=True)
class Fusion:
    """How rankings become one: `by` rrf, combsum or combmnz; `norm` min-max or z of scores; `k` of RRF.

    `weights` has a number for each run, 1 unless said; a run of weight 0 is left out. Images with equal sums stand by
    their best rank in any run, then by name, so that the order of the runs never matters.
    """

    by: str = "rrf"
    norm: str = "min-max"
    k: int = 60
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for what, given, known in (("ways to fuse", self.by, WAYS), ("norms", self.norm, NORMS)):
            if given not in known:
                raise UsageError(f"no {given!r} among the {what}; there are: {', '.join(known)}")
        if self.k < 0:
            raise UsageError(f"k of RRF is 0 or more, not {self.k}; 60 is usual")
        weights = (1.0,) if self.weights is None else self.weights
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
            raise UsageError("weights are finite numbers of 0 or more, and one of them is above 0")

    def __call__(self, runs: Sequence[Run]) -> Run:
        """One run of all queries that any of these has; its header says how it was made and of what."""
        if not runs:
            raise UsageError("there is nothing to fuse; give one run or more")
        weights = self.weights or (1.0,) * len(runs)
        if len(weights) != len(runs):
            raise UsageError(f"{len(runs)} runs need as many weights, not {len(weights)}; give each run one")
        counted = [(run, weight) for run, weight in zip(runs, weights, strict=True) if weight > 0]
        queries = dict.fromkeys(query for run, _ in counted for query in run)
        made = Run({query: self._fused([(run, w) for run, w in counted if query in run], query) for query in queries})
        made.facts = {image: facts for run, _ in reversed(counted) for image, facts in run.facts.items()}
        scale = {"k": self.k} if self.by == "rrf" else {"norm": self.norm}
        made.header = {"fused": self.by, **scale, "weights": list(weights), "of": [run.header for run in runs]}
        made.notes = list(dict.fromkeys(sentence for run, _ in counted for sentence in run.notes))
        return made

    def _fused(self, runs: Sequence[tuple[Run, float]], query: str) -> list[RankedImage]:
        gains: dict[str, list[float]] = {}
        best: dict[str, int] = {}  # ranks
        for run, weight in runs:
            hits = run[query]
            if self.by == "rrf":
                points = 1 / (self.k + np.arange(1, len(hits) + 1, dtype=np.float64))  # (hits,)
            else:
                points = scaled([hit.score for hit in hits], self.norm)
            for rank, (hit, worth) in enumerate(zip(hits, points.tolist(), strict=True), 1):
                gains.setdefault(hit.image, []).append(weight * worth)
                best[hit.image] = min(rank, best.get(hit.image, rank))
        fused = []
        for image, gained in gains.items():
            total = math.fsum(gained)  # which does not depend on the order of the runs
            fused.append(RankedImage(image, total * len(gained) if self.by == "combmnz" else total))
        return sorted(fused, key=lambda hit: (-hit.score, best[hit.image], hit.image))


def scaled(scores: Sequence[float], norm: str = "min-max") -> NDArray[np.float64]:
    """The scores of one ranking from 0 for the lowest, (hits,): up to 1 (`min-max`), or in standard deviations (`z`).

    Where all are equal each counts 1: to be ranked is worth more than not to be.
    """
    given = np.asarray(scores, np.float64)  # (hits,)
    above = given - given.min(initial=math.inf)
    unit = above.max(initial=0.0) if norm == "min-max" else given.std() if len(given) else 0.0
    # Of equal scores the deviation is a rounding error and no unit.
    if not above.any() or unit <= 0:
        return np.ones(len(given))
    points: NDArray[np.float64] = above / unit
    return points


@dataclass(frozen=True, init=False)
class Fused:
    """A stage of stages: each of them answers the queries, and their runs become one."""

    stages: tuple[Stage, ...]
    fusion: Fusion

    def __init__(self, *stages: Stage, fusion: Fusion | None = None) -> None:
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "fusion", fusion or Fusion())

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The fused run; the run that came before is handed to every stage."""
        return self.fusion([stage(queries, run) for stage in self.stages])


# -- weights ------------------------------------------------------------------------------------------------


def learned(
    fusion: Fusion, runs: Sequence[Run], qrels: Qrels, measure: Measure | str = "AP@50"
) -> tuple[Fusion, float, tuple[float, ...]]:
    """Weights from judged queries, the best of a grid that add up to 1; their score, and that of each run alone.

    Learn them on a validation split: on the queries that are reported they flatter. Of equal scores the most even
    weights are taken, for those in the middle of a plateau are the safest.
    """
    tried = {}
    for weights in grid(len(runs)):
        (mean,) = evaluate(replace(fusion, weights=weights)(runs), qrels, [measure]).means.values()
        tried[weights] = float(mean)
    best = max(tried, key=lambda weights: (tried[weights], -sum(weight**2 for weight in weights)))
    alone = tuple(tried[tuple(float(run == only) for run in range(len(runs)))] for only in range(len(runs)))
    return replace(fusion, weights=best), tried[best], alone


def grid(runs: int) -> Iterator[tuple[float, ...]]:
    """Weights of so many runs that add up to 1: every run alone among them, at most about 300 in all."""
    steps = next((s for s in range(STEPS, 1, -1) if math.comb(s + runs - 1, runs - 1) <= TRIES), 1)
    for bars in combinations(range(steps + runs - 1), runs - 1):
        edges = (-1, *bars, steps + runs - 1)
        yield tuple((after - before - 1) / steps for before, after in pairwise(edges))
