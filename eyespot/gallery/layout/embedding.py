"""Vectors in two dimensions by t-SNE (van der Maaten and Hinton 2008), as openTSNE computes it.

docs/decisions/0013-map-of-the-collection.md has the measurements behind the choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.extras import needed
from eyespot.kernels.codes import default_threads
from eyespot.types import Progress, UsageError, Vectors, no_progress

Points = NDArray[np.float32]  # (points, 2)

DIMENSIONS = 50  # that t-SNE compares, after a principal component analysis
PERPLEXITY = 30.0  # about how many neighbours of a photo count
FEWEST = 12  # photos; fewer lie as their two principal components say
SAME = 1e-5  # the largest part of unit vectors along a direction that is rounding alone
STEP = 25  # iterations between two calls of the progress
ITERATIONS = 750  # of openTSNE: 250 of early exaggeration, 500 after it
EXACT = 5_000  # vectors up to which neighbours are found by comparing all
MARGIN = 0.02


def flat_map(vectors: Vectors, seed: int, progress: Progress = no_progress) -> Points:
    """Unit vectors (n, dim) as points (n, 2) between 0 and 1; the same for the same vectors and seed on one machine.

    Raises `UsageError` where openTSNE is not installed.
    """
    progress("finding directions", 0, 0)
    directions = principal_components(vectors, DIMENSIONS)
    if np.abs(directions).max(initial=0) < SAME:  # t-SNE would divide by this spread
        return np.full((len(vectors), 2), 0.5, np.float32)
    if len(vectors) < FEWEST:
        return within_unit_square(np.pad(directions, ((0, 0), (0, 2)))[:, :2])
    try:
        from openTSNE import TSNE
    except ImportError:
        raise UsageError(needed("the map", "openTSNE")) from None
    progress("finding neighbours", 0, 0)
    tsne = TSNE(
        perplexity=min(PERPLEXITY, (len(vectors) - 1) / 3),
        initialization="pca",
        neighbors="exact" if len(vectors) <= EXACT else "auto",
        n_jobs=default_threads(),
        random_state=seed,
        callbacks=_Steps(progress),
        callbacks_every_iters=STEP,
    )
    return within_unit_square(np.asarray(tsne.fit(np.asarray(directions, np.float64)), np.float32))


class _Steps:
    """Turns openTSNE's calls into progress; its iterations begin anew in the second of its two phases."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.done = progress, 0

    def __call__(self, _iteration: int, _error: float, _embedding: Any) -> bool:
        self.done += STEP
        self.progress("laying out", min(self.done, ITERATIONS), ITERATIONS)
        return False  # true would end it


def principal_components(vectors: Vectors, count: int) -> Vectors:
    """The vectors along the directions in which they differ most, (n, at most count)."""
    if not len(vectors):
        return np.zeros((0, 0), np.float32)
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :count]  # (dim, count), the largest spread first
    # An eigenvector has no sign of its own: the largest part of each is positive, on every machine.
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.where(directions[largest, np.arange(directions.shape[1])] < 0, -1, 1)
    return np.asarray(centred @ directions, np.float32)


def within_unit_square(points: NDArray[np.float32]) -> Points:
    """The same map, moved and scaled alike in both directions, so that it fills the unit square but for a margin."""
    if not len(points):
        return np.zeros((0, 2), np.float32)
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    scaled = (points - (low + high) / 2) / size * (1 - 2 * MARGIN) + 0.5
    return np.asarray(scaled, np.float32)


def trustworthiness(vectors: Vectors, points: Points, seed: int, count: int = 300) -> float | None:
    """How far neighbours on the map are neighbours by look, 0 to 1, over `count` points drawn by the seed.

    Venna and Kaski (2001), with the 15 nearest: each of them that is farther by look takes something away. None for so
    few points that none can be farther.
    """
    n = len(vectors)
    k = min(15, (n - 1) // 2)
    if k < 1 or 2 * n <= 3 * k + 1:
        return None
    drawn = np.random.default_rng(seed).choice(n, min(count, n), replace=False)
    lost = 0
    for at in drawn.tolist():
        likeness = vectors @ vectors[at]
        likeness[at] = np.inf
        ranks = np.empty(n, np.int64)
        ranks[np.argsort(-likeness, kind="stable")] = np.arange(n)
        distance = np.square(points - points[at]).sum(axis=1)
        distance[at] = np.inf
        lost += int(np.maximum(ranks[np.argpartition(distance, k)[:k]] - k, 0).sum())
    return 1 - 2 * lost / (len(drawn) * k * (2 * n - 3 * k - 1))
