"""Measures cut at R, each query's own number of relevant images: R-Precision and mAP@R (trec_eval, ECCV-Caption).

mAP@R = (1/R) Σ_{i≤R} P@i · rel(i) (Musgrave et al.). Not AP@k at any one k: every query has a cut of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import RankingPool, Reals, RelevantHits, ratio
from eyespot.types import UsageError


@dataclass(frozen=True)
class RPrec(Measure):
    """R-Precision; its cutoff is each query's own R."""

    rel: int = 1

    name: ClassVar[str] = "Rprec"
    says: ClassVar[str] = "R-Precision: the share of the first R that is relevant, R = number of relevant images"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is not None:
            raise UsageError(f"{self.name} takes no cutoff: it cuts at each query's own number of relevant images")

    def score(self, found: RelevantHits) -> Reals:
        relevant = found.relevant_at(self.rel)
        return ratio(found.hits_within(relevant, self.rel), relevant)

    def expected(self, pool: RankingPool) -> Reals:
        relevant = pool.all_relevant_at(self.rel)
        return ratio(pool.hits_within(np.minimum(relevant, pool.size), self.rel), relevant)


@dataclass(frozen=True)
class MAPR(RPrec):
    """Average precision at each query's own R."""

    ties: str = "rank"

    name: ClassVar[str] = "mAP@R"
    says: ClassVar[str] = "average precision cut at R, R = number of relevant images (ECCV-Caption)"

    def score(self, found: RelevantHits) -> Reals:
        relevant = found.relevant_at(self.rel)
        return ratio(found.precision_sums(relevant, self.rel, self.ties), relevant)

    def expected(self, pool: RankingPool) -> Reals:
        relevant = pool.all_relevant_at(self.rel)
        return ratio(pool.precision_sums(np.minimum(relevant, pool.size), self.rel), relevant)

    def _spelled(self, shown: tuple[str, ...]) -> str:
        base, _, inside = super()._spelled(shown).partition("(")
        return f"mAP({inside}@R" if inside else base


load = RPrec
