"""P@k: the share of the first k that is relevant. A ranking shorter than k is filled up with irrelevant images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import Ints, RankingPool, Reals, RelevantHits, ratio


@dataclass(frozen=True)
class Precision(Measure):
    """Relevant images in the first k over k; without a cutoff over the length of the ranking."""

    rel: int = 1

    name: ClassVar[str] = "P"
    says: ClassVar[str] = "precision: the share of the first k that is relevant"
    aliases: ClassVar[tuple[str, ...]] = ("Precision",)

    def score(self, found: RelevantHits) -> Reals:
        return ratio(found.hits_within(found.cuts(self.cutoff), self.rel), self._over(found.lengths))

    def expected(self, pool: RankingPool) -> Reals:
        return ratio(pool.hits_within(pool.cuts(self.cutoff), self.rel), self._over(pool.size))

    def _over(self, lengths: Ints) -> Ints:
        return lengths if self.cutoff is None else np.full_like(lengths, self.cutoff)


load = Precision
