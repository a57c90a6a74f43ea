"""Rows to the nearest of some centroids, and sums of rows by centroid: the inner loops of k-means.

Importing this file imports numba. Every kernel releases the GIL and runs on one thread; what it gives for a row, or
for a centroid, does not depend on how the work was cut into pieces.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="no-any-return"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

from eyespot.kernels.cache import keep_compiled_kernels

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import types  # noqa: E402

_LANES = 64  # scores looked at together: one that matters is rare
_REORDER = {"reassoc", "contract"}  # sums may use vector registers; NaN and infinity keep their meaning
_READ = types.Array(types.float32, 2, "C", readonly=True)
_FLOATS, _FLOAT, _IDS, _LABELS = types.float32[:, ::1], types.float32[::1], types.int32[:, ::1], types.int32[::1]
_CENTROIDS = types.Tuple((_FLOATS, _FLOAT))
_SUMS = types.Tuple((types.float64[:, ::1], types.int64[::1]))
_SPAN = types.UniTuple(types.int64, 2)


@numba.njit(nogil=True, error_model="numpy")
def _push_down(scores, ids, score, id):
    """Put a better score in the place of the least, which stands first in its heap."""
    at = 0
    while 2 * at + 1 < scores.size:
        child = 2 * at + 1
        if child + 1 < scores.size and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= score:
            break
        scores[at], ids[at] = scores[child], ids[child]
        at = child
    scores[at], ids[at] = score, id


@numba.njit(types.void(_FLOATS, _FLOAT, _FLOATS, _IDS, types.UniTuple(types.int64, 3)), nogil=True, cache=True,
            error_model="numpy")  # fmt: skip
def keep_best(dots, halves, scores, ids, span):
    """Keep for each row the best of its scores so far, and which centroids they are.

    `dots`: rows by centroids (n, c); a score is a dot less half the squared length of the centroid (c,). `scores` and
    `ids`: a heap for each row (n, kept), the least first, changed in place; of equal scores the one met first stays.
    `span`: rows from start to stop, and the number of the first centroid.
    """
    for row in range(span[0], span[1]):
        for first in range(0, halves.size, _LANES):
            last, floor, hit = min(first + _LANES, halves.size), scores[row, 0], False
            for at in range(first, last):
                hit |= dots[row, at] - halves[at] > floor
            if hit:
                for at in range(first, last):
                    if dots[row, at] - halves[at] > scores[row, 0]:
                        _push_down(scores[row], ids[row], dots[row, at] - halves[at], span[2] + at)


@numba.njit(nogil=True, error_model="numpy", fastmath=_REORDER)
def _four_scores(vector, centroids, ids, scores):
    """Four centroids at once, so that the row is fetched once for all of them."""
    points, halves = centroids
    first, second, third, fourth = points[ids[0]], points[ids[1]], points[ids[2]], points[ids[3]]
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for at in range(vector.size):
        value = vector[at]
        a += first[at] * value
        b += second[at] * value
        c += third[at] * value
        d += fourth[at] * value
    scores[0], scores[1] = a - halves[ids[0]], b - halves[ids[1]]
    scores[2], scores[3] = c - halves[ids[2]], d - halves[ids[3]]


@numba.njit(types.void(_READ, _IDS, _CENTROIDS, types.Tuple((_LABELS, _FLOAT)), _SPAN), nogil=True, cache=True,
            error_model="numpy")  # fmt: skip
def move_to_nearest(vectors, candidates, centroids, found, span):
    """Give the rows of a span the nearest of the centroid they have and their candidates (n, kept).

    `centroids`: (k, dim) and half their squared lengths (k,). `found`: labels (n,), changed in place, and the score of
    each row's centroid (n,). Of equally near ones the row's own stays, or the one met first.
    """
    labels, best = found
    ids, scores = np.empty(4, np.int32), np.empty(4, np.float32)
    for row in range(span[0], span[1]):
        ids[:] = labels[row]
        _four_scores(vectors[row], centroids, ids, scores)
        best[row] = scores[0]
        for first in range(0, candidates.shape[1], 4):
            for i in range(4):
                ids[i] = candidates[row, min(first + i, candidates.shape[1] - 1)]
            _four_scores(vectors[row], centroids, ids, scores)
            for i in range(4):
                if scores[i] > best[row]:
                    best[row], labels[row] = scores[i], ids[i]


@numba.njit(types.void(_READ, _LABELS, _FLOATS, _FLOAT, _SPAN), nogil=True, cache=True,
            error_model="numpy", fastmath=_REORDER)  # fmt: skip
def measure(vectors, labels, points, distances, span):
    """distances[row] = the squared distance of a row to its centroid, for the rows of a span."""
    for row in range(span[0], span[1]):
        total, point = np.float64(0), points[labels[row]]
        for at in range(point.size):
            total += np.float64(vectors[row, at] - point[at]) ** 2
        distances[row] = total


@numba.njit(types.void(_READ, _LABELS, _SUMS, _SPAN), nogil=True, cache=True, error_model="numpy")
def add_up(vectors, labels, sums, part):
    """Add each row to the sum and the count of its centroid, for labels of remainder part[0] modulo part[1]."""
    totals, counts = sums
    for row in range(labels.size):
        label = labels[row]
        if label % part[1] == part[0]:
            counts[label] += 1
            for at in range(vectors.shape[1]):
                totals[label, at] += vectors[row, at]
