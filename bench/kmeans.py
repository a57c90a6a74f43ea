"""k-means against faiss on one thread: CPU time and inertia at two sizes, the same first centroids and iterations.

Clustered unit vectors of 768 dimensions as in exact.py: 20,000 in 500 clusters, and four times as many in four times
as many clusters, sixteen times the work. With --quick a tenth of each, with a goal of 2 for time, since fewer clusters
save less. The peer runs with BLAS from 20 rows on and with all rows; its time is without the labels, ours with them.
Inertia is that of the final centroids, each row with its nearest, in double precision.

    python bench/kmeans.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import DIM, Command, Floats, Measurement, Race, clusters, say
from eyespot.kernels.kmeans import KMeans, cluster, sample_rows

Task = Callable[[int], Floats]  # from a seed to centroids

SIZES = (20_000, 500), (80_000, 2_000)
TRIALS, ITERATIONS = (7, 3), 10
TIME_GOAL, QUICK_GOAL, INERTIA_GOAL = 0.7, 2.0, 1.001
PEER = "faiss Kmeans"


def ours(vectors: Floats, count: int) -> Task:
    return lambda seed: cluster(vectors, KMeans(count, ITERATIONS, seed, threads=1)).centroids


def theirs(vectors: Floats, count: int) -> Task:
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20
    faiss.omp_set_num_threads(1)
    options = {"max_points_per_centroid": len(vectors), "min_points_per_centroid": 1}

    def task(seed: int) -> Floats:
        peer = faiss.Kmeans(DIM, count, niter=ITERATIONS, seed=seed, **options)
        peer.train(vectors, init_centroids=vectors[sample_rows(len(vectors), count, seed)])
        return np.asarray(peer.centroids, np.float32)

    return task


def inertia(vectors: Floats, centroids: Floats) -> float:
    """The sum of squared distances of all rows to their nearest centroids."""
    points = centroids.astype(np.float64)
    halves = np.square(points).sum(axis=1) / 2
    total = 0.0
    for start in range(0, len(vectors), 4096):
        some = vectors[start : start + 4096].astype(np.float64)
        nearest = (some @ points.T - halves).argmax(axis=1)
        total += float(np.square(some - points[nearest]).sum())
    return total


def measurements(options: Namespace) -> Iterator[Measurement]:
    world, shrink, races = clusters(), 10 if options.quick else 1, []
    cluster(world.draw(100), KMeans(20, threads=1))  # compiled before the clock runs
    for (all_rows, all_clusters), trials in zip(SIZES, TRIALS, strict=True):
        vectors, count = world.draw(all_rows // shrink), all_clusters // shrink
        name, goal = f"{count} clusters of {len(vectors)} rows", QUICK_GOAL if options.quick else TIME_GOAL
        races.append(Race(f"time, {name}", PEER, ours(vectors, count), theirs(vectors, count), goal))
        centroids = [races[-1].run(seed) for seed in range(trials)]
        inertias = np.array([[inertia(vectors, each) for each in pair] for pair in centroids])  # (trials, 2)
        yield races[-1].measurement()
        yield Measurement.from_trials(f"inertia, {name}", inertias[:, 0] / inertias[:, 1], PEER, INERTIA_GOAL)
    peer, own = (np.median(races[1].times[at]) / np.median(races[0].times[at]) for at in (0, 1))
    say(f"sixteen times the work takes {own:.1f} times as long, {PEER} {peer:.1f} times")


if __name__ == "__main__":
    Command(__doc__, fast=True, threads=1).run(measurements)
