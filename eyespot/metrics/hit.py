"""Hit@k: 1 if any relevant image stands in the first k, else 0.

What captioning papers (COCO, Flickr30K, ECCV-Caption, ReCoS) print as R@K; with one relevant image it equals recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._found import RelevantHits
from eyespot.metrics._measure import Measure
from eyespot.metrics._pool import RankingPool
from eyespot.metrics._ragged import Ints, Reals


@dataclass(frozen=True)
class Hit(Measure):
    """Whether any of the first k is relevant."""

    rel: int = 1

    name: ClassVar[str] = "Hit"
    says: ClassVar[str] = "1 if any of the first k is relevant: what captioning papers call R@K"
    mteb: ClassVar[str] = "hit_rate"

    def score(self, found: RelevantHits) -> Reals:
        return any_within(found, self.cutoff, self.rel)

    def expected(self, pool: RankingPool) -> Reals:
        """1 − C(n − r, k) / C(n, k)."""
        return chance_of_any(pool.size, pool.relevant_at(self.rel), pool.cuts(self.cutoff))


load = Hit


def any_within(found: RelevantHits, cutoff: int | None, rel: int) -> Reals:
    """1 where any of the first k is relevant, else 0, (q,)."""
    return (found.hits_within(found.cuts(cutoff), rel) > 0).astype(np.float64)


def chance_of_any(size: Ints, relevant: Ints, cut: Ints) -> Reals:
    """The chance that one of `relevant` among `size` stands in the first `cut` of a random order, (q,)."""
    chances = np.ones(len(size))
    for row, (n, r, k) in enumerate(zip(size.tolist(), relevant.tolist(), cut.tolist(), strict=True)):
        if r <= n - k:
            few, many = sorted((r, k))  # C(n − r, k) / C(n, k) is the same with r and k exchanged
            taken = np.arange(few)
            chances[row] -= np.prod((n - many - taken) / (n - taken))
    return chances
