"""What the metrics spend their time in: joining rankings with grades, and sums over the relevant hits of each query.

Importing this file imports numba, so import it only where something is scored. All arrays are ragged: rows
`offsets[i]` up to `offsets[i + 1]` belong to query i. Ranks count from 1. A `cut` of a query is the last rank that
counts. Every kernel releases the GIL and runs on one thread.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-arg, call-overload, no-any-return"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eyespot.kernels.cache import keep_compiled_kernels

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import types  # noqa: E402


def _read_only(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C", readonly=True)


_INTS, _GRADES, _REALS = (_read_only(kind) for kind in (types.int64, types.int32, types.float64))
_MADE, _SCORES = types.int32[::1], types.float64[::1]
_FOUND = types.Tuple((_INTS, _INTS, _GRADES, _INTS, _INTS))  # offsets, ranks, grades, first, last
_IDEAL = types.Tuple((_INTS, _GRADES))  # offsets, grades


def _kernel(*signature: Any) -> Callable[[Any], Any]:
    """Compiled when this file is first imported, and kept on disk."""
    return numba.njit(*signature, nogil=True, cache=True, error_model="numpy")


def _part(function: Any) -> Any:
    """Compiled into the kernels that call it."""
    return numba.njit(nogil=True, error_model="numpy")(function)


# -- rankings joined with grades -------------------------------------------------------------------------------

_WORD = 64  # images whose marks share one number
_STRIDE = 16  # grades looked at in one go


@_part
def _mark(marks, grade_of, judged):
    """Note one query's grades by image, and mark its images."""
    codes, grades, start, stop = judged
    for at in range(start, stop):
        code = np.uint32(codes[at])
        marks[code // _WORD] |= np.uint64(1) << np.uint64(code % _WORD)
        grade_of[code] = grades[at]


@_part
def _unmark(marks, codes, start, stop):
    for at in range(start, stop):
        marks[np.uint32(codes[at]) // _WORD] = 0


@_kernel(
    types.void(
        types.Tuple((_INTS, _INTS, _GRADES)),
        types.Tuple((_INTS, _INTS, _GRADES, _GRADES)),
        types.int64,
        _MADE,
    )
)
def join(run, qrels, images, out):
    """The grade of each hit into `out`, -1 where its query has none for its image; the rankings one after another.

    `run`: starts (q,) and stops (q,) of the rankings, codes (hits,). `qrels`: starts (q,) and stops (q,) of the same
    queries' judgements, codes and grades (judged,); codes are those of the run, below `images`, or -1 for an image
    that the run never ranks: the caller leaves those out. One bit an image stays in the first-level cache.
    """
    starts, stops, ranked = run
    marks = np.zeros(images // _WORD + 1, np.uint64)
    grade_of = np.empty(images, np.int32)
    shift = 0
    for i in range(starts.size):
        _mark(marks, grade_of, (qrels[2], qrels[3], qrels[0][i], qrels[1][i]))
        hits, found = ranked[starts[i] : stops[i]], out[shift : shift + stops[i] - starts[i]]
        for at in range(hits.size):
            code = np.uint32(hits[at])
            known = (marks[code // _WORD] >> np.uint64(code % _WORD)) & np.uint64(1)
            found[at] = grade_of[code] if known else np.int32(-1)
        shift += hits.size
        _unmark(marks, qrels[2], qrels[0][i], qrels[1][i])


@_part
def _next_relevant(grades, row, stop):
    """The first row of grade 1 or more, or `stop`."""
    while row + _STRIDE <= stop:
        best = np.int32(0)
        for at in range(_STRIDE):
            best = max(best, grades[np.uint64(row + at)])
        if best >= 1:
            break
        row += _STRIDE
    while row < stop and grades[row] < 1:
        row += 1
    return row


@_part
def _alike(scores, row, begin, stop):
    """The rows of equal score around a row: the first, and the one after the last."""
    low, high = row, row + 1
    while low > begin and scores[low - 1] == scores[row]:
        low -= 1
    while high < stop and scores[high] == scores[row]:
        high += 1
    return low, high


@_kernel(
    types.int64(
        types.Tuple((_INTS, _GRADES, _REALS)),
        _INTS,
        types.Tuple((types.int64[::1], types.int64[::1], _MADE, types.int64[::1], types.int64[::1])),
    )
)
def find(rankings, relevant, found):
    """The relevant hits of rankings (offsets, grades, scores) into `found`; -1, or the first query with too many.

    `relevant` (q,): how many there can be. `found`: offsets (q + 1,), and for each hit, in arrays with room for all,
    its rank, its grade, and the ranks of the first and last hit of its score.
    """
    offsets, grades, scores = rankings
    starts, ranks, hit_grades, first, last = found
    starts[0] = count = 0
    for i in range(relevant.size):
        begin, stop = offsets[i], offsets[i + 1]
        low, high = begin, begin  # the group of equal scores seen last
        row = _next_relevant(grades, begin, stop)
        while row < stop:
            if count - starts[i] == relevant[i]:
                return i
            if row >= high:
                low, high = _alike(scores, row, begin, stop)
            ranks[count], hit_grades[count] = row - begin + 1, grades[row]
            first[count], last[count] = low - begin + 1, high - begin
            count += 1
            row = _next_relevant(grades, row + 1, stop)
        starts[i + 1] = count
    return -1


# -- sums over the relevant hits of each query -----------------------------------------------------------------


@_part
def _group(found, at, stop, cut, rel):
    """From one relevant hit: the row after its group of equal scores, and how many of the group count."""
    _, ranks, grades, _, last = found
    end, count = last[at], 0
    while at < stop and ranks[at] <= end:
        count += ranks[at] <= cut and grades[at] >= rel
        at += 1
    return at, count


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def hits_within(found, cut, rel, out):
    """How many hits of grade `rel` or more stand at rank `cut` or before."""
    offsets, ranks, grades, _, _ = found
    for i in range(out.size):
        count = 0
        for at in range(offsets[i], offsets[i + 1]):
            if ranks[at] > cut[i]:
                break
            count += grades[at] >= rel
        out[i] = count


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def precision_sum(found, cut, rel, out):
    """The sum of precision at rank i over the relevant hits i up to the cut."""
    offsets, ranks, grades, _, _ = found
    for i in range(out.size):
        count, total = 0, 0.0
        for at in range(offsets[i], offsets[i + 1]):
            if ranks[at] > cut[i]:
                break
            if grades[at] >= rel:
                count += 1
                total += count / ranks[at]
        out[i] = total


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def precision_sum_of_groups(found, cut, rel, out):
    """The same, equal scores taken together: each hit has the precision at the last rank of its group, or the cut."""
    offsets, ranks, _, _, last = found
    for i in range(out.size):
        count, total = 0, 0.0
        at, stop = offsets[i], offsets[i + 1]
        while at < stop and ranks[at] <= cut[i]:
            end = min(last[at], cut[i])
            at, more = _group(found, at, stop, cut[i], rel)
            count += more
            total += more * (count / end)
        out[i] = total


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def first_reciprocal(found, cut, rel, out):
    """1 / rank of the first relevant hit up to the cut, else 0."""
    offsets, ranks, grades, _, _ = found
    for i in range(out.size):
        out[i] = 0.0
        for at in range(offsets[i], offsets[i + 1]):
            if ranks[at] > cut[i]:
                break
            if grades[at] >= rel:
                out[i] = 1.0 / ranks[at]
                break


@_part
def _expected_reciprocal(first, last, relevant):
    """E[1 / rank of the first relevant one] when `relevant` of the hits at ranks first..last stand in any order."""
    none_yet, total = 1.0, 0.0
    for rank in range(first, last - relevant + 2):
        share = relevant / (last - rank + 1)
        total += none_yet * share / rank
        none_yet *= 1.0 - share
    return total


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def expected_first_reciprocal(found, cut, rel, out):
    """The same over all orders of the first group of equal scores that holds a relevant hit."""
    offsets, ranks, _, first, last = found
    for i in range(out.size):
        out[i] = 0.0
        at, stop = offsets[i], offsets[i + 1]
        while at < stop and ranks[at] <= cut[i]:
            begin, end = first[at], min(last[at], cut[i])
            at, count = _group(found, at, stop, cut[i], rel)
            if count > 0:
                out[i] = _expected_reciprocal(begin, end, count)
                break


# -- discounted gain -------------------------------------------------------------------------------------------

LINEAR, EXPONENTIAL, BINARY = range(3)


@_part
def _gain(grade, kind):
    if kind == LINEAR:
        return np.float64(grade)
    return 2.0**grade - 1.0 if kind == EXPONENTIAL else 1.0


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def discounted_gain(found, cut, kind, out):
    """The sum of gain / log2(rank + 1) over the relevant hits up to the cut."""
    offsets, ranks, grades, _, _ = found
    for i in range(out.size):
        total = 0.0
        for at in range(offsets[i], offsets[i + 1]):
            if ranks[at] > cut[i]:
                break
            total += _gain(grades[at], kind) / math.log2(ranks[at] + 1)
        out[i] = total


@_part
def _discounts(first, last):
    total = 0.0
    for rank in range(first, last + 1):
        total += 1.0 / math.log2(rank + 1)
    return total


@_kernel(types.void(_FOUND, _INTS, types.int64, _SCORES))
def discounted_gain_of_groups(found, cut, kind, out):
    """The same, the gains of equal scores averaged over their group (as far as it lies before the cut)."""
    offsets, ranks, grades, first, last = found
    for i in range(out.size):
        total = 0.0
        at, stop = offsets[i], offsets[i + 1]
        while at < stop and ranks[at] <= cut[i]:
            begin, end, gains = first[at], min(last[at], cut[i]), 0.0
            while at < stop and ranks[at] <= end:
                gains += _gain(grades[at], kind)
                at += 1
            total += gains / (end - begin + 1) * _discounts(begin, end)
        out[i] = total


@_kernel(types.void(_IDEAL, _INTS, types.int64, _SCORES))
def ideal_gain(ideal, cut, kind, out):
    """The discounted gain of the best ranking: all relevant images by descending grade, up to the cut."""
    offsets, grades = ideal
    for i in range(out.size):
        total = 0.0
        for at in range(offsets[i], min(offsets[i + 1], offsets[i] + cut[i])):
            total += _gain(grades[at], kind) / math.log2(at - offsets[i] + 2)
        out[i] = total


@_kernel(types.void(_INTS, _GRADES, types.int64, _SCORES))
def judged_share(offsets, grades, cut, out):
    """The share of hits up to the cut that are judged; 0 for an empty ranking."""
    for i in range(out.size):
        stop = min(offsets[i + 1], offsets[i] + cut)
        count = 0
        for row in range(offsets[i], stop):
            count += grades[row] >= 0
        out[i] = count / (stop - offsets[i]) if stop > offsets[i] else 0.0
