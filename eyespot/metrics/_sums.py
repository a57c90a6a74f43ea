"""What the metrics spend their time in: joining rankings with grades, and sums over the relevant hits of each query.

All arrays are ragged: rows `offsets[i]` up to `offsets[i + 1]` belong to query i. Ranks count from 1. A `cut` of a
query is the last rank that counts. `np.bincount` adds its weights one after another; `np.sum` would add in pairs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from eyespot.metrics._ragged import Grades, Ints, Reals, counts_where, offsets_of, rows_between, sums

Found = tuple[Ints, Ints, Grades, Ints, Ints]  # offsets, ranks, grades, first, last
LINEAR, EXPONENTIAL, BINARY = range(3)


# -- rankings joined with grades -------------------------------------------------------------------------------


def join(run: tuple[Ints, Ints, Any], qrels: tuple[Ints, Ints, Any, Grades], images: int, out: Grades) -> None:
    """The grade of each hit into `out`, -1 where its query has none for its image; the rankings one after another.

    `run`: starts (q,) and stops (q,) of the rankings, codes (hits,). `qrels`: starts (q,) and stops (q,) of the same
    queries' judgements, codes and grades (judged,); codes are those of the run, below `images`: the caller leaves out
    what the run never ranks.
    """
    bounds = np.stack([*run[:2], *qrels[:2]], axis=1).tolist()
    grade_of, shift = np.full(images, -1, np.int32), 0
    for start, stop, begin, end in bounds:
        judged = qrels[2][begin:end]
        grade_of[judged] = qrels[3][begin:end]
        out[shift : shift + stop - start] = grade_of[run[2][start:stop]]
        grade_of[judged] = -1
        shift += stop - start


def find(rankings: tuple[Ints, Grades, Reals], relevant: Ints, found: tuple[Ints, Ints, Grades, Ints, Ints]) -> int:
    """The relevant hits of rankings (offsets, grades, scores) into `found`; -1, or the first query with too many.

    `relevant` (q,): how many there can be. `found`: offsets (q + 1,), and for each hit, in arrays with room for all,
    its rank, its grade, and the ranks of the first and last hit of its score.
    """
    offsets, grades, scores = rankings
    starts, ranks, hit_grades, first, last = found
    rows = np.flatnonzero(grades >= 1)
    query = np.searchsorted(offsets, rows, side="right") - 1
    counts = np.bincount(query, minlength=len(relevant))
    if (counts > relevant).any():
        return int(np.argmax(counts > relevant))
    fresh = np.zeros(len(scores) + 1, np.bool_)
    fresh[1:-1] = scores[1:] != scores[:-1]
    fresh[offsets] = True
    groups = np.flatnonzero(fresh)  # where equal scores begin, and the end
    group = np.searchsorted(groups, rows, side="right")
    starts[:], before, count = offsets_of(counts), offsets[query], len(rows)
    ranks[:count], hit_grades[:count] = rows - before + 1, grades[rows]
    first[:count], last[:count] = groups[group - 1] - before + 1, groups[group] - before
    return -1


# -- sums over the relevant hits of each query -----------------------------------------------------------------


class _Groups(NamedTuple):
    """Counted hits of equal score: their query, ranks from `begin` to `end` or the cut, and how many there are."""

    query: Ints  # (groups,)
    begin: Ints
    end: Ints
    size: Ints
    members: Ints  # (hits,) the group of each counted hit

    @classmethod
    def of(cls, found: Found, cut: Ints, query: Ints, hits: Ints) -> _Groups:
        _, _, _, first, last = found
        fresh = (np.diff(query, prepend=-1) != 0) | (np.diff(last[hits], prepend=-1) != 0)
        heads = np.flatnonzero(fresh)
        size = np.diff(heads, append=len(hits))
        which = hits[heads]
        end = np.minimum(last[which], cut[query[heads]])
        return cls(query[heads], first[which], end, size, np.cumsum(fresh) - 1)


def _counted(found: Found, cut: Ints, rel: int | None = None) -> tuple[Ints, Ints]:
    """The hits up to the cut, of grade `rel` or more if that is given: the query of each, and its place in `found`."""
    offsets, ranks, grades, _, _ = found
    query = np.repeat(np.arange(len(cut)), np.diff(offsets))
    counts = ranks <= cut[query]
    hits = np.flatnonzero(counts if rel is None else counts & (grades >= rel))
    return query[hits], hits


def _so_far(query: Ints) -> Ints:
    """How many hits of its query there are up to each one."""
    return np.arange(1, len(query) + 1) - np.searchsorted(query, query)


def _summed(query: Ints, values: Reals, out: Reals) -> None:
    out[:] = np.bincount(query, values, minlength=len(out))


def hits_within(found: Found, cut: Ints, rel: int, out: Reals) -> None:
    """How many hits of grade `rel` or more stand at rank `cut` or before."""
    out[:] = np.bincount(_counted(found, cut, rel)[0], minlength=len(out))


def precision_sum(found: Found, cut: Ints, rel: int, out: Reals) -> None:
    """The sum of precision at rank i over the relevant hits i up to the cut."""
    query, hits = _counted(found, cut, rel)
    _summed(query, _so_far(query) / found[1][hits], out)


def precision_sum_of_groups(found: Found, cut: Ints, rel: int, out: Reals) -> None:
    """The same, equal scores taken together: each hit has the precision at the last rank of its group, or the cut."""
    query, hits = _counted(found, cut, rel)
    groups = _Groups.of(found, cut, query, hits)
    count = _so_far(query)[np.cumsum(groups.size) - 1]  # of each group with those before it
    _summed(groups.query, groups.size * (count / groups.end), out)


def first_reciprocal(found: Found, cut: Ints, rel: int, out: Reals) -> None:
    """1 / rank of the first relevant hit up to the cut, else 0."""
    query, hits = _counted(found, cut, rel)
    queries, first = np.unique(query, return_index=True)
    out[:] = 0.0
    out[queries] = 1.0 / found[1][hits[first]]


def _expected_reciprocal(first: int, last: int, relevant: int) -> float:
    """E[1 / rank of the first relevant one] when `relevant` of the hits at ranks first..last stand in any order."""
    ranks = np.arange(first, last - relevant + 2)
    share = relevant / (last - ranks + 1)
    none_yet = np.cumprod(np.concatenate([[1.0], 1.0 - share[:-1]]))
    return float(np.cumsum(none_yet * share / ranks)[-1])


def expected_first_reciprocal(found: Found, cut: Ints, rel: int, out: Reals) -> None:
    """The same over all orders of the first group of equal scores that holds a relevant hit."""
    groups = _Groups.of(found, cut, *_counted(found, cut, rel))
    queries, first = np.unique(groups.query, return_index=True)
    bounds = np.stack([groups.begin, groups.end, groups.size], axis=1)[first].tolist()
    out[:] = 0.0
    out[queries] = [_expected_reciprocal(*group) for group in bounds]


# -- discounted gain -------------------------------------------------------------------------------------------


def _gain(grades: Grades, kind: int) -> Reals:
    if kind == LINEAR:
        return grades.astype(np.float64)
    return np.ldexp(1.0, grades) - 1.0 if kind == EXPONENTIAL else np.ones(len(grades))


def _log2(numbers: Ints) -> Reals:
    """The logarithms of the C library: numpy's own differ from them in the last bit."""
    distinct, places = np.unique(numbers, return_inverse=True)
    return np.array([math.log2(number) for number in distinct.tolist()])[places]


def discounted_gain(found: Found, cut: Ints, kind: int, out: Reals) -> None:
    """The sum of gain / log2(rank + 1) over the relevant hits up to the cut."""
    query, hits = _counted(found, cut)
    _summed(query, _gain(found[2][hits], kind) / _log2(found[1][hits] + 1), out)


def discounted_gain_of_groups(found: Found, cut: Ints, kind: int, out: Reals) -> None:
    """The same, the gains of equal scores averaged over their group (as far as it lies before the cut)."""
    query, hits = _counted(found, cut)
    groups = _Groups.of(found, cut, query, hits)
    gains = np.bincount(groups.members, _gain(found[2][hits], kind), minlength=len(groups.query))
    lengths = groups.end - groups.begin + 1
    discounts = sums(offsets_of(lengths), 1.0 / _log2(rows_between(groups.begin, lengths) + 1))
    _summed(groups.query, gains / lengths * discounts, out)


def ideal_gain(ideal: tuple[Ints, Grades], cut: Ints, kind: int, out: Reals) -> None:
    """The discounted gain of the best ranking: all relevant images by descending grade, up to the cut."""
    offsets, grades = ideal
    lengths = np.minimum(np.diff(offsets), cut)
    rows = rows_between(offsets[:-1], lengths)
    places = rows - np.repeat(offsets[:-1], lengths)
    out[:] = sums(offsets_of(lengths), _gain(grades[rows], kind) / _log2(places + 2))


def judged_share(offsets: Ints, grades: Grades, cut: int, out: Reals) -> None:
    """The share of hits up to the cut that are judged; 0 for an empty ranking."""
    lengths = np.minimum(np.diff(offsets), cut)
    judged = counts_where(offsets_of(lengths), grades[rows_between(offsets[:-1], lengths)] >= 0)
    out[:] = np.divide(judged, lengths, out=np.zeros(len(out)), where=lengths > 0)
