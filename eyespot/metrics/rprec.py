"""Rprec: precision at rank R, R being the number of relevant images of the query (trec_eval, ECCV-Caption)."""

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
            raise UsageError("Rprec takes no cutoff: it cuts at each query's own number of relevant images")

    def score(self, found: RelevantHits) -> Reals:
        relevant = found.relevant_at(self.rel)
        return ratio(found.hits_within(relevant, self.rel), relevant)

    def expected(self, pool: RankingPool) -> Reals:
        relevant = pool.all_relevant_at(self.rel)
        return ratio(pool.hits_within(np.minimum(relevant, pool.size), self.rel), relevant)


load = RPrec
