"""The twin of `assigning` in numpy: k-means without numba, with the same rule for equals.

Sums of rows are those of the compiled kernels to the last bit. Scores and distances are added in another order, so
that a label differs where rounding decides it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]
Span = tuple[int, int]


def keep_best(dots: Floats, halves: Floats, scores: Floats, ids: Ids, span: tuple[int, int, int]) -> None:
    """Keep for each row the best of its scores so far, and which centroids they are: see `assigning`, but no heap."""
    rows, count = slice(*span[:2]), scores.shape[1]
    every = np.concatenate([scores[rows], dots[rows] - halves], axis=1)  # (n, count + c)
    every[np.isnan(every)] = -np.inf  # argmax would take it for the best
    numbers = np.broadcast_to(np.arange(span[2], span[2] + len(halves), dtype=np.int32), (len(every), len(halves)))
    names = np.concatenate([ids[rows], numbers], axis=1)
    row = np.arange(len(every))
    for place in range(count):  # of equals the first, which a partition would not give
        best = every.argmax(axis=1)
        scores[rows, place], ids[rows, place] = every[row, best], names[row, best]
        every[row, best], names[row, best] = -np.inf, -1


def move_to_nearest(
    vectors: Floats, candidates: Ids, centroids: tuple[Floats, Floats], found: tuple[Ids, Floats], span: Span
) -> None:
    """Give the rows of a span the nearest of the centroid they have and their candidates (n, count)."""
    (points, halves), rows = centroids, slice(*span)
    labels, best = found[0][rows], found[1][rows]
    best[:] = np.einsum("nd,nd->n", vectors[rows], points[labels]) - halves[labels]
    for ids in candidates[rows].T:
        scores = np.einsum("nd,nd->n", vectors[rows], points[ids]) - halves[ids]
        nearer = scores > best
        best[nearer], labels[nearer] = scores[nearer], ids[nearer]


def measure(vectors: Floats, labels: Ids, points: Floats, distances: Floats, span: Span) -> None:
    """distances[row] = the squared distance of a row to its centroid, for the rows of a span."""
    rows = slice(*span)
    away = (vectors[rows] - points[labels[rows]]).astype(np.float64)
    distances[rows] = np.square(away).sum(axis=1)


def add_up(vectors: Floats, labels: Ids, sums: tuple[NDArray[np.float64], NDArray[np.int64]], part: Span) -> None:
    """Add each row to the sum and the count of its centroid, for labels of remainder part[0] modulo part[1]."""
    totals, counts = sums
    rows = np.flatnonzero(labels % part[1] == part[0])
    names, places = np.unique(labels[rows], return_inverse=True)
    counts[names] += np.bincount(places, minlength=len(names))
    places = np.concatenate([np.arange(len(names)), places])
    for column in range(vectors.shape[1]):
        # bincount adds one number after another, and so in the order of the rows
        numbers = np.concatenate([totals[names, column], vectors[rows, column]])
        totals[names, column] = np.bincount(places, numbers, minlength=len(names))
