"""What a random order has to draw from: how many images each query ranks, and the grades among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eyespot.metrics._aligned import Aligned
from eyespot.metrics._found import RelevantHits
from eyespot.metrics._ragged import Grades, Ints, Reals, counts_where
from eyespot.types import UsageError


@dataclass(frozen=True, eq=False)
class RankingPool:
    """`size` (q,) images to rank; `offsets` (q + 1,) and `grades` of the relevant ones among them, descending;
    `ideal_offsets` and `ideal` of all relevant ones, which measures divide by."""

    size: Ints
    offsets: Ints
    grades: Grades
    ideal_offsets: Ints
    ideal: Grades

    def relevant_at(self, rel: int) -> Ints:
        """How many images in the pool have this grade or more, (q,)."""
        return counts_where(self.offsets, self.grades >= rel)

    def all_relevant_at(self, rel: int) -> Ints:
        """How many images have it, in the pool or not, (q,)."""
        return counts_where(self.ideal_offsets, self.ideal >= rel)

    def cuts(self, cutoff: int | None) -> Ints:
        """The last rank that counts, (q,): the cutoff, or the whole pool where that is smaller."""
        return self.size if cutoff is None else np.minimum(self.size, cutoff)

    def shuffled(self, rng: np.random.Generator) -> RelevantHits:
        """The relevant images at ranks of a random order."""
        counts = np.diff(self.offsets)
        ranks = [np.sort(rng.choice(n, r, replace=False)) + 1 for n, r in zip(self.size, counts, strict=True)]
        grades = [rng.permutation(part) for part in np.split(self.grades, self.offsets[1:-1])]
        flat = np.concatenate([*ranks, []]).astype(np.int64)
        mixed = np.concatenate([*grades, []]).astype(np.int32)
        return RelevantHits(self.offsets, flat, mixed, flat, flat, self.size, self.ideal_offsets, self.ideal)


def pool_of(rankings: Aligned, size: Any = None) -> RankingPool:
    """The pool of each query. `size`: its images, an int or (q,), all relevant ones included; None: its own ranking."""
    if size is None:
        found, ranked = rankings.relevant_hits, rankings.lengths
        query = np.repeat(np.arange(len(ranked)), np.diff(found.offsets))
        grades = found.grades[np.lexsort((-found.grades, query))]
        return RankingPool(ranked, found.offsets, grades, rankings.ideal_offsets, rankings.ideal)
    sizes = np.broadcast_to(np.asarray(size, np.int64), len(rankings.queries)).copy()  # (q,)
    short = np.flatnonzero(sizes < rankings.relevant)
    if len(short):
        query, n, r = rankings.queries[short[0]], sizes[short[0]], rankings.relevant[short[0]]
        raise UsageError(f"a pool of {n} images cannot hold the {r} that are relevant to query {query!r}")
    return RankingPool(sizes, rankings.ideal_offsets, rankings.ideal, rankings.ideal_offsets, rankings.ideal)


def reciprocals(cuts: Ints) -> Reals:
    """1 + 1/2 + … + 1/k for each cut k, (q,)."""
    longest = int(cuts.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, longest + 1))])  # (longest + 1,)
    return np.asarray(harmonic[cuts])
