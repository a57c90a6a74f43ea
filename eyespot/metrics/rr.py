"""RR@k: 1 / rank of the first relevant image, 0 if none stands in the first k; its mean is MRR.

Ties: `rank` takes the order as given; `average` is the expectation over all orders of equal scores. INQUIRE's released
evaluator leaves ties to an unstable sort, so that its MRR changes with the processor; the expectation does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import RankingPool, Reals, RelevantHits


@dataclass(frozen=True)
class RR(Measure):
    """Reciprocal rank of the first relevant image."""

    ties: str = "rank"
    rel: int = 1

    name: ClassVar[str] = "RR"
    says: ClassVar[str] = "1 / rank of the first relevant image; its mean is MRR"
    aliases: ClassVar[tuple[str, ...]] = ("MRR",)

    def score(self, found: RelevantHits) -> Reals:
        return found.first_reciprocals(found.cuts(self.cutoff), self.rel, self.ties)

    def expected(self, pool: RankingPool) -> Reals:
        """Σ_{i≤k} P(the first relevant one stands at i) / i."""
        sizes = zip(pool.size.tolist(), pool.relevant_at(self.rel).tolist(), pool.cuts(self.cutoff), strict=True)
        return np.array([first_at(size, relevant, int(cut)) for size, relevant, cut in sizes], np.float64)


load = RR


def first_at(size: int, relevant: int, cut: int) -> float:
    """The expected reciprocal rank of the first of `relevant` among `size` in random order, 0 beyond the cut."""
    if relevant == 0:
        return 0.0
    ranks = np.arange(1, min(cut, size - relevant + 1) + 1)
    share = relevant / (size - ranks + 1)  # (ranks,), the chance at this rank when none came before
    none_yet = np.concatenate([[1.0], np.cumprod(1 - share)[:-1]])
    return float((none_yet * share / ranks).sum())
