"""Success@k: 1 if any relevant image stands in the first k, else 0: trec_eval's name of the same number as Hit@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyespot.metrics._found import RelevantHits
from eyespot.metrics._measure import Measure
from eyespot.metrics._pool import RankingPool
from eyespot.metrics._ragged import Reals
from eyespot.metrics.hit import any_within, chance_of_any


@dataclass(frozen=True)
class Success(Measure):
    """Whether any of the first k is relevant, under trec_eval's name."""

    rel: int = 1

    name: ClassVar[str] = "Success"
    says: ClassVar[str] = "1 if any of the first k is relevant (trec_eval's success_k; equals Hit@k)"
    mteb: ClassVar[str] = "success"

    def score(self, found: RelevantHits) -> Reals:
        return any_within(found, self.cutoff, self.rel)

    def expected(self, pool: RankingPool) -> Reals:
        return chance_of_any(pool.size, pool.relevant_at(self.rel), pool.cuts(self.cutoff))


load = Success
