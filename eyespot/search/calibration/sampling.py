"""Which hits of a ranking to judge: at random, from strata that are even in the logarithm of the rank.

The first ranks decide what a user sees, the last ones hold most pictures, and every hit has a known chance of being
drawn: that makes estimates from the sample hold whatever the ranking is like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

STRATA_PER_DECADE = 2


@dataclass(frozen=True, eq=False)
class RankSample:
    """Hits of a ranking that are judged: `ranks` (n,), from 1, each once, in the order of their verdicts.

    `edges` (strata + 1,) are the first rank of each stratum and the rank after the last; within a stratum all hits had
    the same chance. Ranks that were not drawn at random (what somebody clicked) are a `RankSample` of one stratum,
    too: the curve is as good as their spread over the ranks.
    """

    edges: Ints
    ranks: Ints

    def __post_init__(self) -> None:
        if len(np.unique(self.ranks)) < len(self.ranks):
            raise UsageError("a hit is judged twice; keep one verdict for each rank")
        if len(self.ranks) and not 1 <= self.ranks.min() <= self.ranks.max() <= self.hits:
            raise UsageError(f"ranks lie between 1 and {self.hits}, the length of the ranking")

    @classmethod
    def of(cls, hits: int, ranks: object) -> RankSample:
        """These ranks of a ranking of so many hits, however they were chosen."""
        return cls(np.array([1, hits + 1]), np.asarray(ranks, dtype=np.int64).reshape(-1))

    @property
    def hits(self) -> int:
        """The length of the ranking."""
        return int(self.edges[-1]) - 1

    @property
    def sizes(self) -> Ints:
        """How many hits each stratum has, (strata,)."""
        return np.diff(self.edges)

    def stratum_of(self, ranks: Ints) -> Ints:
        """The stratum of each of these ranks, in the same shape."""
        return np.searchsorted(self.edges, ranks, side="right") - 1

    @property
    def taken(self) -> Ints:
        """How many hits of each stratum are judged, (strata,)."""
        return np.bincount(self.stratum_of(self.ranks), minlength=len(self.sizes))

    @property
    def inclusion(self) -> Reals:
        """The probability with which each judged hit was drawn, (n,)."""
        share: Reals = self.taken / self.sizes  # (strata,)
        return share[self.stratum_of(self.ranks)]

    def joined(self, ranks: Ints) -> RankSample:
        """With further ranks after its own."""
        return RankSample(self.edges, np.concatenate([self.ranks, ranks]))

    def drawn(self, wanted: Ints, rng: np.random.Generator) -> Ints:
        """So many ranks of each stratum (strata,) that are not judged yet, ascending."""
        free = [np.setdiff1d(np.arange(*pair), self.ranks) for pair in zip(self.edges, self.edges[1:], strict=False)]
        chosen = [rng.choice(ranks, n, replace=False) for ranks, n in zip(free, wanted, strict=True)]
        return np.sort(np.concatenate(chosen))


def plan(hits: int, verdicts: int, seed: int = 0) -> RankSample:
    """The hits of a ranking to judge, as many as there shall be verdicts, or all of a shorter ranking.

    A stratum's share goes with the root of its size, as Neyman's allocation has it where relevance falls as 1/rank; a
    rise far down, behind look-alikes, needs no less. Raises `UsageError` for no hits or no verdicts.
    """
    if hits < 1 or verdicts < 1:
        raise UsageError("a calibration needs at least one hit and one verdict")
    edges = strata(hits, verdicts)
    nothing = RankSample(edges, np.zeros(0, np.int64))
    return nothing.joined(nothing.drawn(allocated(nothing.sizes, verdicts), np.random.default_rng(seed)))


def strata(hits: int, verdicts: int) -> Ints:
    """The first rank of each stratum and the rank after the last: of equal width in log-rank, two verdicts each."""
    number = max(1, min(round(STRATA_PER_DECADE * np.log10(hits)), verdicts // 2))
    inner = np.ceil(hits ** (np.arange(1, number) / number)).astype(np.int64)
    return np.unique(np.concatenate([[1], inner, [hits + 1]]))


def allocated(sizes: Ints, verdicts: int, *, power: float = 0.5, least: int = 1) -> Ints:
    """How many hits of each stratum to judge, (strata,): by its size to this power, so many at least, never too many.

    More verdicts only add to what fewer get.
    """
    taken = np.minimum(sizes, least)
    while taken.sum() < min(verdicts, sizes.sum()):
        need = np.where(taken < sizes, sizes**power / (taken + 0.5), -1)  # the highest average comes next
        taken[np.argmax(need)] += 1
    return taken
