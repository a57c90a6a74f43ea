"""AP@k: the mean of precision at the ranks of the relevant images; three norms, which papers rarely name.

AP@k = (1/N) Σ_{i≤k} P@i · rel(i), where N is

- `all`: R, all relevant images (trec_eval's map and map_cut_k). Cannot reach 1 where k < R.
- `min-k`: min(k, R) (INQUIRE appendix G, ILIAS, CIRCO). Reaches 1 iff the first min(k, R) are all relevant.
- `retrieved`: the relevant images among the first k (scikit-learn on the k hits). The trap: it falls when a relevant
  image enters the first k at their end.

Ties: `rank` takes the order as given; `average` takes equal scores together as one threshold (scikit-learn, INQUIRE's
and ILIAS's released evaluators), each hit with the precision at the end of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import Ints, RankingPool, Reals, RelevantHits, ratio
from eyespot.types import UsageError

NORMS = ("all", "min-k", "retrieved")


@dataclass(frozen=True)
class AP(Measure):
    """Average precision; `norm` is what it divides by."""

    norm: str = "all"
    ties: str = "rank"
    rel: int = 1

    name: ClassVar[str] = "AP"
    says: ClassVar[str] = "average precision; norm=all (trec_eval), min-k (INQUIRE, ILIAS, CIRCO) or retrieved"
    aliases: ClassVar[tuple[str, ...]] = ("MAP",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in NORMS:
            raise UsageError(f"norm of AP is one of {', '.join(NORMS)}, not {self.norm!r}")

    def score(self, found: RelevantHits) -> Reals:
        cut = found.cuts(self.cutoff)
        norm: Reals | Ints = found.relevant_at(self.rel)
        if self.norm == "retrieved":
            norm = found.hits_within(cut, self.rel)
        elif self.norm == "min-k":
            norm = np.minimum(cut, norm)
        return ratio(found.precision_sums(cut, self.rel, self.ties), norm)

    def expected(self, pool: RankingPool) -> Reals:
        """The expected precision at every rank, over the norm; not for `retrieved`."""
        if self.norm == "retrieved":
            return super().expected(pool)
        relevant = pool.all_relevant_at(self.rel)
        nominal = relevant if self.cutoff is None else np.minimum(relevant, self.cutoff)
        whole = nominal if self.norm == "min-k" else relevant
        return ratio(pool.precision_sums(pool.cuts(self.cutoff), self.rel), whole)


load = AP
