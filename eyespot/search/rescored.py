"""A second stage from scores that are there: the first hits of a ranking in the order of other scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from eyespot.types import RankedImage, Run

STEP = 1e-7  # between equals
SINGLE = 2.0**-23  # of a score: less is no difference in single precision


@dataclass(frozen=True)
class Rescored:
    """A second stage: the first `depth` of every ranking in the order of these scores, the rest behind as they were.

    Equals of either stage stay equals.
    """

    scores: Run
    depth: int

    def __call__(self, run: Run) -> tuple[Run, int]:
        """The re-ranked run, and how many of the first `depth` had no score (they stay behind those that have)."""
        made, without = {}, 0
        for query, hits in run.items():
            known = dict(self.scores[query]) if query in self.scores else {}
            head, tail = hits[: self.depth], hits[self.depth :]
            scored = sorted((hit for hit in head if hit.image in known), key=lambda hit: -known[hit.image])
            unscored = [hit for hit in head if hit.image not in known]
            without += len(unscored)
            # The scored with their scores, the rest below them in the order given; ties stay ties
            ranking = [RankedImage(hit.image, known[hit.image]) for hit in scored]
            lowest = min((hit.score for hit in ranking), default=0.0)
            step = lowest - below(ranking)
            for rank, (_, equals) in enumerate(groupby([*unscored, *tail], key=lambda hit: hit.score), 1):
                ranking += [RankedImage(hit.image, lowest - step * rank) for hit in equals]
            made[query] = ranking
        return run.reranked(made, reranked=self.depth), without


def falling(hits: Iterable[RankedImage]) -> list[RankedImage]:
    """The hits in their order, in scores of which none equals another, in single precision either."""
    made: list[RankedImage] = []
    for hit in hits:
        most = made[-1].score - max(STEP, abs(made[-1].score) * SINGLE) if made else hit.score
        made.append(RankedImage(hit.image, min(hit.score, most)))
    return made


def followed(scored: list[RankedImage], rest: Iterable[RankedImage]) -> list[RankedImage]:
    """The scored hits, best first, and others behind them in their order."""
    lowest = scored[-1].score if scored else 0.0
    return [*scored, *(RankedImage(hit.image, lowest - rank) for rank, hit in enumerate(rest, 1))]


def below(hits: Sequence[RankedImage]) -> float:
    """A score that is clearly under all of these."""
    lowest = min((hit.score for hit in hits), default=0.0)
    return lowest - max(1.0, math.ulp(lowest) * 4)
