"""A second stage from scores that are there: the first hits of a ranking in the order of other scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from eyespot.types import RankedImage, Run


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
            made[query] = _descending([RankedImage(h.image, known[h.image]) for h in scored], [*unscored, *tail])
        reranked = Run(made)
        reranked.header, reranked.facts = {**run.header, "reranked": self.depth}, run.facts
        return reranked, without


def below(hits: Sequence[RankedImage]) -> float:
    """A score that is clearly under all of these."""
    lowest = min((hit.score for hit in hits), default=0.0)
    return lowest - max(1.0, math.ulp(lowest) * 4)


def _descending(scored: list[RankedImage], rest: list[RankedImage]) -> list[RankedImage]:
    """The scored with their scores, the rest below them in the order given; ties stay ties."""
    lowest = min((hit.score for hit in scored), default=0.0)
    step = lowest - below(scored)
    groups = enumerate(groupby(rest, key=lambda hit: hit.score), 1)
    return [*scored, *(RankedImage(hit.image, lowest - step * rank) for rank, (_, equals) in groups for hit in equals)]
