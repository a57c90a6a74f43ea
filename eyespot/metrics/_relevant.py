"""The relevant hits of rankings with their ranks, and the sums over them that measures are made of.

Arrays are ragged: rows `offsets[i]` up to `offsets[i + 1]` belong to query i. Ranks count from 1. A `cut` (q,) is the
last rank that counts. `np.bincount` adds its weights one after another; `np.sum` would add in pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Grades: TypeAlias = NDArray[Any]  # int32, or float64 where some are not whole numbers
Reals: TypeAlias = NDArray[np.float64]

NO_CUT = 1 << 40  # a rank that no ranking reaches
GAINS = ("linear", "exponential", "binary")


def offsets_of(lengths: Any) -> Ints:
    """(q,) lengths to (q + 1,) offsets."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def rows_between(starts: Ints, lengths: Ints) -> Ints:
    """The rows starts[i], starts[i] + 1, … of every query, one query after another, (sum of lengths,)."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def counts_where(offsets: Ints, marked: NDArray[np.bool_]) -> Ints:
    """How many rows of each query are marked, (q,)."""
    before = np.concatenate([[0], np.cumsum(marked)])  # (rows + 1,)
    return np.asarray(before[offsets[1:]] - before[offsets[:-1]], dtype=np.int64)


def sums(offsets: Ints, values: Reals) -> Reals:
    """The sum of each query's values, (q,)."""
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.bincount(queries, weights=values, minlength=len(offsets) - 1).astype(np.float64)


def ratio(part: Any, whole: Any) -> Reals:
    """part / whole, and 0 where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0))


@dataclass(frozen=True, eq=False)
class _Ties:
    """Counted hits of equal score: their query, ranks from `begin` to `end` or the cut, and how many there are."""

    query: Ints  # (groups,)
    begin: Ints
    end: Ints
    size: Ints
    members: Ints  # (hits,) the group of each counted hit


@dataclass(frozen=True, eq=False)
class RelevantHits:
    """Hits of a grade above 0 by rank, under queries, and all such grades of their images, found or not.

    `offsets` (q + 1,), `ranks` from 1, `grades`, and the ranks of the `first` and `last` hit of equal score (found,);
    `lengths` (q,) of the rankings; `ideal_offsets` (q + 1,) and `ideal`, the grades to be found, descending.
    """

    offsets: Ints
    ranks: Ints
    grades: Grades
    first: Ints
    last: Ints
    lengths: Ints
    ideal_offsets: Ints
    ideal: Grades

    def relevant_at(self, rel: int) -> Ints:
        """How many images have this grade or more, (q,)."""
        return counts_where(self.ideal_offsets, self.ideal >= rel)

    def cuts(self, cutoff: int | None) -> Ints:
        """The same cut for every query, (q,)."""
        return np.full(len(self.lengths), NO_CUT if cutoff is None else cutoff, dtype=np.int64)

    def hits_within(self, cut: Ints, rel: int) -> Reals:
        """How many hits of grade `rel` or more stand up to the cut, (q,)."""
        return self._summed(self._counted(cut, rel)[0], None)

    def precision_sums(self, cut: Ints, rel: int, ties: str) -> Reals:
        """Σ_{i≤cut} P@i · rel(i), (q,); with ties `average` each hit has the precision at the end of its equals."""
        query, hits = self._counted(cut, rel)
        so_far = np.arange(1, len(query) + 1) - np.searchsorted(query, query)  # hits of the query up to each one
        if ties == "rank":
            return self._summed(query, so_far / self.ranks[hits])
        groups = self._ties(cut, query, hits)
        count = so_far[np.cumsum(groups.size) - 1]  # of each group with those before it
        return self._summed(groups.query, groups.size * (count / groups.end))

    def first_reciprocals(self, cut: Ints, rel: int, ties: str) -> Reals:
        """1 / rank of the first relevant hit up to the cut, else 0, (q,); `average`: over all orders of its equals."""
        query, hits = self._counted(cut, rel)
        out = np.zeros(len(cut))
        if ties == "rank":
            first = np.flatnonzero(np.diff(query, prepend=-1))
            out[query[first]] = 1.0 / self.ranks[hits[first]]
            return out
        groups = self._ties(cut, query, hits)
        first = np.flatnonzero(np.diff(groups.query, prepend=-1))
        bounds = np.stack([groups.query, groups.begin, groups.end, groups.size], axis=1)[first].tolist()
        for at, begin, end, relevant in bounds:
            ranks = np.arange(begin, end - relevant + 2)
            share = relevant / (end - ranks + 1)
            none_yet = np.cumprod(np.concatenate([[1.0], 1.0 - share[:-1]]))
            out[at] = np.cumsum(none_yet * share / ranks)[-1]
        return out

    def gains(self, cut: Ints, gain: str, ties: str) -> Reals:
        """Σ gain / log2(rank + 1) up to the cut, (q,); `average`: the gains of equal scores are shared among them."""
        query, hits = self._counted(cut)
        if ties == "rank":
            return self._summed(query, gain_of(self.grades[hits], gain) / _log2(self.ranks[hits] + 1))
        groups = self._ties(cut, query, hits)
        gains = np.bincount(groups.members, gain_of(self.grades[hits], gain), minlength=len(groups.query))
        lengths = groups.end - groups.begin + 1
        discounts = sums(offsets_of(lengths), 1.0 / _log2(rows_between(groups.begin, lengths) + 1))
        return self._summed(groups.query, gains / lengths * discounts)

    def _counted(self, cut: Ints, rel: int | None = None) -> tuple[Ints, Ints]:
        """The hits up to the cut, of grade `rel` or more if that is given: the query of each, and its row."""
        query = np.repeat(np.arange(len(cut)), np.diff(self.offsets))
        counts = self.ranks <= cut[query]
        hits = np.flatnonzero(counts if rel is None else counts & (self.grades >= rel))
        return query[hits], hits

    def _ties(self, cut: Ints, query: Ints, hits: Ints) -> _Ties:
        fresh = (np.diff(query, prepend=-1) != 0) | (np.diff(self.last[hits], prepend=-1) != 0)
        heads = np.flatnonzero(fresh)
        which, of = hits[heads], query[heads]
        size, end = np.diff(heads, append=len(hits)), np.minimum(self.last[which], cut[of])
        return _Ties(of, self.first[which], end, size, np.cumsum(fresh) - 1)

    def _summed(self, query: Ints, values: Reals | None) -> Reals:
        return np.bincount(query, values, minlength=len(self.lengths)).astype(np.float64)


def ideal_gains(offsets: Ints, grades: Grades, cut: Ints, gain: str) -> Reals:
    """The discounted gain of the best ranking, (q,): all relevant images by descending grade, up to the cut."""
    lengths = np.minimum(np.diff(offsets), cut)
    rows = rows_between(offsets[:-1], lengths)
    places = rows - np.repeat(offsets[:-1], lengths)
    return sums(offsets_of(lengths), gain_of(grades[rows], gain) / _log2(places + 2))


def gain_of(grades: Grades, gain: str) -> Reals:
    """What each grade counts, as one of `GAINS`, (n,)."""
    if gain == "binary":
        return (grades >= 1).astype(np.float64)
    return np.exp2(grades.astype(np.float64)) - 1.0 if gain == "exponential" else grades.astype(np.float64)


def _log2(numbers: Ints) -> Reals:
    """The logarithms of the C library: numpy's own differ from them in the last bit."""
    table = np.bincount(numbers).astype(np.float64)  # no longer than the longest ranking
    distinct = np.flatnonzero(table)
    table[distinct] = [math.log2(number) for number in distinct.tolist()]
    return np.asarray(table[numbers])


@dataclass(frozen=True, eq=False)
class RankingPool:
    """What a random order has to draw from: `size` (q,) images to rank; `offsets` (q + 1,) and `grades` of the relevant
    ones among them, descending; `ideal_offsets` and `ideal` of all relevant ones, which measures divide by."""

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

    def hits_within(self, cut: Ints, rel: int) -> Reals:
        """How many hits to expect up to the cut, (q,): every relevant image stands there with probability cut/n."""
        return ratio(cut, self.size) * self.relevant_at(rel)

    def precision_sums(self, cut: Ints, rel: int) -> Reals:
        """By linearity over ranks, Σ_{i≤cut} (r/n) (1 + (i−1)(r−1)/(n−1)) / i, (q,)."""
        relevant = self.relevant_at(rel)
        another = ratio(relevant - 1.0, self.size - 1.0)  # the chance that one more is relevant, given one that is
        ranks = np.arange(1, int(cut.max(initial=0)) + 1)
        harmonic = np.concatenate([[0.0], np.cumsum(1 / ranks)])[cut]
        return np.asarray(ratio(relevant, self.size) * (harmonic + another * (cut - harmonic)))

    def shuffled(self, rng: np.random.Generator) -> RelevantHits:
        """The relevant images at ranks of a random order."""
        counts = np.diff(self.offsets)
        ranks = [np.sort(rng.choice(n, r, replace=False)) + 1 for n, r in zip(self.size, counts, strict=True)]
        grades = [rng.permutation(part) for part in np.split(self.grades, self.offsets[1:-1])]
        flat = np.concatenate([*ranks, []]).astype(np.int64)
        mixed = np.concatenate([*grades, self.grades[:0]])
        return RelevantHits(self.offsets, flat, mixed, flat, flat, self.size, self.ideal_offsets, self.ideal)
