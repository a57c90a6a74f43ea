"""nDCG@k: gain discounted by log2(rank + 1), over that of the best ranking there is.

DCG@k = Σ_{i≤k} gain(i) / log2(i + 1). Gains: `linear` is the grade (trec_eval), `exponential` is 2^grade − 1 (Burges),
`binary` is 1 for any relevant image (INQUIRE appendix G); on grades of 0 and 1 the three are one. The ideal ranking
holds all relevant images, found or not, by descending grade. Grades may be fractions, such as means of several.

Ties: `rank` takes the order as given; `average` gives each of equal scores the mean gain of its group (scikit-learn).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import GAINS, NO_CUT, RankingPool, Reals, RelevantHits, gain_of, ideal_gains, ratio, sums
from eyespot.types import UsageError

DCG = {"linear": "log2", "exponential": "exp-log2"}  # as ir-measures spells them


@dataclass(frozen=True)
class NDCG(Measure):
    """Normalised discounted cumulative gain, graded or binary."""

    gain: str = "linear"
    ties: str = "rank"

    name: ClassVar[str] = "nDCG"
    says: ClassVar[str] = "normalised discounted gain; gain=linear (trec_eval), exponential or binary (INQUIRE)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain not in GAINS:
            raise UsageError(f"gain of nDCG is one of {', '.join(GAINS)}, not {self.gain!r}")

    def score(self, found: RelevantHits) -> Reals:
        cut = found.cuts(self.cutoff)
        best = ideal_gains(found.ideal_offsets, found.ideal, cut, self.gain)
        return ratio(found.gains(cut, self.gain, self.ties), best)

    def expected(self, pool: RankingPool) -> Reals:
        """The mean gain of the pool at every rank, discounted, over the ideal."""
        mean = ratio(sums(pool.offsets, gain_of(pool.grades, self.gain)), pool.size)  # (q,), of one hit
        cuts = pool.cuts(self.cutoff)
        each = 1 / np.log2(np.arange(2, int(cuts.max(initial=0)) + 2))
        discounts = np.concatenate([[0.0], np.cumsum(each)])[cuts]  # Σ_{i≤k} 1 / log2(i + 1), (q,)
        cut = np.full(len(cuts), self.cutoff or NO_CUT, dtype=np.int64)
        return ratio(mean * discounts, ideal_gains(pool.ideal_offsets, pool.ideal, cut, self.gain))

    def __str__(self) -> str:
        return self._spelled(("gain", *self.short_parameters) if self.gain in DCG else self.short_parameters)

    def _parameter_text(self, name: str, value: Any) -> str:
        return f"dcg={DCG[value]!r}" if name == "gain" and value in DCG else super()._parameter_text(name, value)


load = NDCG
