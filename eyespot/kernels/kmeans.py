"""Spherical k-means over vectors on disk, in bounded memory, and draws of rows that are the same for a seed.

Lloyd's algorithm (1982) on the unit sphere: each row goes to the centroid with the largest inner product, each centroid
to the mean direction of its rows. faiss finds the nearest centroids where it is installed, else products of blocks in
numpy. With the same of the two, the same settings give the same clusters on one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.codes import NOT_FINITE, Block, chunks, floats
from eyespot.types import Progress, UsageError, no_progress

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # by which the states of SplitMix64 differ
_AT_ONCE = 1 << 22  # numbers of vectors, or of products, in memory at once


@dataclass(frozen=True)
class KMeans:
    """How to cluster.

    clusters: how many; at most the number of rows.
    iterations: how often centroids are moved; fewer where no row changes its cluster.
    seed: draws the rows that are the first centroids, and the sample.
    sample: learn the centroids from so many drawn rows only, which are held in memory; all rows get a label.
    """

    clusters: int
    iterations: int = 10
    seed: int = 0
    sample: int | None = None

    def __post_init__(self) -> None:
        if self.clusters < 1 or self.iterations < 0:
            raise UsageError("k-means takes 1 cluster or more, and 0 or more iterations")
        if self.sample is not None and self.sample < self.clusters:
            raise UsageError(f"{self.clusters} clusters cannot be learned from {self.sample} rows; sample more")


@dataclass(frozen=True)
class Clusters:
    """What k-means found; `inertia` is the sum of squared distances of all rows to their centroids."""

    centroids: Floats  # (clusters, dim), of unit length
    labels: NDArray[np.int32]  # (rows,)
    distances: Floats  # (rows,), squared
    inertia: float


def cluster(vectors: Block, settings: KMeans, progress: Progress = no_progress) -> Clusters:
    """Clusters of the rows of `vectors` (rows, dim), float32 or float16, often memory-mapped.

    Besides the vectors it takes 12 bytes for each number of the centroids, 12 for each row, and some 100 MB.
    `UsageError` if there are fewer rows than clusters, or a number that is not finite.
    """
    if vectors.ndim != 2 or len(vectors) < settings.clusters:
        problem = f"{settings.clusters} clusters cannot be made of vectors of shape {vectors.shape}"
        raise UsageError(f"{problem}; ask for fewer")
    sampled = settings.sample is not None and settings.sample < len(vectors)
    known = vectors[sample_rows(len(vectors), settings.sample or 0, settings.seed)] if sampled else vectors
    centroids = _unit(floats(known, sample_rows(len(known), settings.clusters, settings.seed)))
    total = (settings.iterations + 1) * len(known) + sampled * len(vectors)
    labels = np.full(len(known), -1, np.int32)
    for number in range(settings.iterations + 1):
        before, done = labels, number * len(known)
        labels, distances, sums = _assign(known, centroids, lambda row: progress("clustering", done + row, total))  # noqa: B023
        if number == settings.iterations or np.array_equal(labels, before):
            break
        empty = np.flatnonzero(np.bincount(labels, minlength=len(centroids)) == 0)
        far = np.argsort(-distances, kind="stable")[: len(empty)]
        sums[empty] = floats(known, far)  # a cluster without rows begins again at a row far from its centroid
        centroids = _unit(sums)
    if sampled:
        done = total - len(vectors)
        labels, distances, _ = _assign(vectors, centroids, lambda row: progress("clustering", done + row, total))
    return Clusters(centroids, labels, distances, float(distances.sum(dtype=np.float64)))


def sample_rows(rows: int, count: int, seed: int = 0) -> Ids:
    """`count` of so many rows, ascending: the same draw for a seed on every machine and with every release."""
    return np.sort(np.argsort(_lots(rows, seed), kind="stable")[:count])


def drawn_from_each(labels: NDArray[np.integer[Any]], count: int, seed: int = 0) -> Ids:
    """Up to `count` rows of each label (rows,), ascending; a label with fewer rows gives all of them."""
    order = np.lexsort((_lots(len(labels), seed), labels))  # (rows,)
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels[order[:1]] - 1))  # (distinct labels,)
    place = np.arange(len(labels)) - np.repeat(starts, np.diff(starts, append=len(labels)))
    return np.sort(order[place < count])


def _lots(rows: int, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on row and seed only, (rows,)."""
    return mixed(np.arange(1, rows + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed % 2**64))


def mixed(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What SplitMix64 (Steele, Lea and Flood 2014) gives in these states, (n,): no two of them give the same."""
    lots = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    lots = (lots ^ (lots >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return lots ^ (lots >> np.uint64(31))


def _assign(
    block: Block, centroids: Floats, report: Callable[[int], object]
) -> tuple[NDArray[np.int32], Floats, NDArray[np.float64]]:
    """The nearest centroid of each row and its squared distance, (rows,) both; sums of rows, (clusters, dim)."""
    labels, distances, sums = (
        np.empty(len(block), np.int32),
        np.empty(len(block), np.float32),
        np.zeros(centroids.shape),
    )
    nearest = _nearest_in(centroids)
    for start, stop in chunks(block, _AT_ONCE):
        vectors, part = floats(block, slice(start, stop)), slice(start, stop)
        labels[part] = nearest(vectors)
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found by its distance
            distances[part] = np.square(vectors - centroids[labels[part]]).sum(axis=1)
        if not np.isfinite(distances[part]).all():
            raise UsageError(NOT_FINITE)
        order = np.argsort(labels[part], kind="stable")
        names, starts = np.unique(labels[part][order], return_index=True)
        sums[names] += np.add.reduceat(vectors[order], starts, axis=0, dtype=np.float64)
        report(stop)
    return labels, distances, sums


def _nearest_in(centroids: Floats) -> Callable[[Floats], NDArray[Any]]:
    """A function from vectors (n, dim) to the centroid of the largest inner product of each, (n,)."""
    if find_spec("faiss"):
        faiss: Any = import_module("faiss")
        index = faiss.IndexFlatIP(centroids.shape[1])
        index.add(centroids)
        return lambda vectors: index.search(vectors, 1)[1][:, 0]
    step = max(1, _AT_ONCE // len(centroids))

    def nearest(vectors: Floats) -> NDArray[Any]:
        pieces = (vectors[start : start + step] for start in range(0, len(vectors), step))
        return np.concatenate([(piece @ centroids.T).argmax(axis=1) for piece in pieces])

    return nearest


def _unit(centroids: NDArray[Any]) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
        return np.ascontiguousarray(centroids / np.where(lengths > 0, lengths, 1), np.float32)
