"""Hit@k: 1 if any relevant image stands in the first k, else 0.

What captioning papers (COCO, Flickr30K, ECCV-Caption, ReCoS) print as R@K; with one relevant image it equals recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import RankingPool, Reals, RelevantHits


@dataclass(frozen=True)
class Hit(Measure):
    """Whether any of the first k is relevant."""

    rel: int = 1

    name: ClassVar[str] = "Hit"
    says: ClassVar[str] = "1 if any of the first k is relevant: what captioning papers call R@K"

    def score(self, found: RelevantHits) -> Reals:
        return (found.hits_within(found.cuts(self.cutoff), self.rel) > 0).astype(np.float64)

    def expected(self, pool: RankingPool) -> Reals:
        """1 − C(n − r, k) / C(n, k)."""
        columns = pool.size.tolist(), pool.relevant_at(self.rel).tolist(), pool.cuts(self.cutoff).tolist()
        chances = np.ones(len(pool.size))
        for row, (n, r, k) in enumerate(zip(*columns, strict=True)):
            if r <= n - k:
                few, many = sorted((r, k))  # C(n − r, k) / C(n, k) is the same with r and k exchanged
                taken = np.arange(few)
                chances[row] -= np.prod((n - many - taken) / (n - taken))
        return chances


class Success(Hit):
    """The same number under trec_eval's name."""

    name: ClassVar[str] = "Success"
    says: ClassVar[str] = "1 if any of the first k is relevant (trec_eval's success_k; equals Hit@k)"


load = Hit
