"""R@k: the share of all relevant images found in the first k.

Not what captioning papers call R@K: theirs is 1 as soon as any true partner is found, and is called Hit@k here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import RankingPool, Reals, RelevantHits, ratio


@dataclass(frozen=True)
class Recall(Measure):
    """Relevant images in the first k over all relevant images."""

    rel: int = 1

    name: ClassVar[str] = "R"
    says: ClassVar[str] = "recall: the share of all relevant images in the first k"
    aliases: ClassVar[tuple[str, ...]] = ("Recall",)

    def score(self, found: RelevantHits) -> Reals:
        return ratio(found.hits_within(found.cuts(self.cutoff), self.rel), found.relevant_at(self.rel))

    def expected(self, pool: RankingPool) -> Reals:
        return ratio(pool.hits_within(pool.cuts(self.cutoff), self.rel), pool.all_relevant_at(self.rel))


class Oracle(Recall):
    """The same number as what the best re-ranking of the first k could still find: ILIAS's bound of a second stage."""

    name: ClassVar[str] = "Oracle"
    says: ClassVar[str] = "the share of all relevant images in the first k, as ILIAS's bound on re-ranking (equals R@k)"
    aliases: ClassVar[tuple[str, ...]] = ()


load = Recall
