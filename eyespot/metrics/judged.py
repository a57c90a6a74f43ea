"""Judged@k: the share of the first k that has a judgement. Where it is low, other measures rest on little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyespot.metrics._aligned import UNJUDGED, Aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import NO_CUT, Reals, RelevantHits, counts_where, offsets_of, ratio, rows_between


@dataclass(frozen=True)
class Judged(Measure):
    """Judged images in the first k over the images there (k, or the length of a shorter ranking)."""

    name: ClassVar[str] = "Judged"
    says: ClassVar[str] = "the share of the first k that has a judgement"

    def __call__(self, rankings: Aligned) -> Reals:
        seen = rankings.judged_only() if self.judged_only else rankings
        lengths = np.minimum(seen.lengths, self.cutoff or NO_CUT)
        judged = seen.grades[rows_between(seen.offsets[:-1], lengths)] != UNJUDGED
        return ratio(counts_where(offsets_of(lengths), judged), lengths)

    def score(self, found: RelevantHits) -> Reals:
        raise NotImplementedError("Judged@k needs the whole rankings, with their unjudged hits")


load = Judged
