"""P@k: the share of the first k that is relevant. A ranking shorter than k is filled up with irrelevant images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._found import RelevantHits, ratio
from eyespot.metrics._measure import Measure
from eyespot.metrics._pool import RankingPool
from eyespot.metrics._ragged import Ints, Reals


@dataclass(frozen=True)
class Precision(Measure):
    """Relevant images in the first k over k; without a cutoff over the length of the ranking."""

    rel: int = 1

    name: ClassVar[str] = "P"
    says: ClassVar[str] = "precision: the share of the first k that is relevant"
    aliases: ClassVar[tuple[str, ...]] = ("Precision",)
    mteb: ClassVar[str] = "precision"

    def score(self, found: RelevantHits) -> Reals:
        return ratio(found.hits_within(found.cuts(self.cutoff), self.rel), self._over(found.lengths))

    def expected(self, pool: RankingPool) -> Reals:
        seen = ratio(pool.cuts(self.cutoff), pool.size) * pool.relevant_at(self.rel)
        return ratio(seen, self._over(pool.size))

    def _over(self, lengths: Ints) -> Ints:
        return lengths if self.cutoff is None else np.full_like(lengths, self.cutoff)


load = Precision
