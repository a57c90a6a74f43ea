"""Oracle@k: the share of all relevant images in the first k: what the best re-ranking of them could still find.

ILIAS's name for the bound of a second stage; the same number as R@k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyespot.metrics._found import RelevantHits
from eyespot.metrics._measure import Measure
from eyespot.metrics._pool import RankingPool
from eyespot.metrics._ragged import Reals
from eyespot.metrics.recall import Recall


@dataclass(frozen=True)
class Oracle(Measure):
    """Relevant images in the first k over all relevant images, as a bound on re-ranking."""

    rel: int = 1

    name: ClassVar[str] = "Oracle"
    says: ClassVar[str] = "the share of all relevant images in the first k, as ILIAS's bound on re-ranking (equals R@k)"
    mteb: ClassVar[str] = "oracle"

    def score(self, found: RelevantHits) -> Reals:
        return Recall(self.cutoff, rel=self.rel).score(found)

    def expected(self, pool: RankingPool) -> Reals:
        return Recall(self.cutoff, rel=self.rel).expected(pool)


load = Oracle
