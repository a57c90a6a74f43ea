"""k-means against faiss on one thread: CPU time and inertia at two sizes, the same first centroids and iterations.

Clustered unit vectors of 768 dimensions as in exact.py: 20,000 in 500 clusters, and four times as many in four times
as many clusters, sixteen times the work (--quick: a tenth of each, with a goal of 2 for time, for the fewer the
clusters, the less is saved). The peer runs before and after each call, with BLAS from 20 rows on and all rows; its
time is without the labels, ours with them. Inertia is that of the final centroids, every row with its nearest, in
double precision. Exit code 4 if a goal is missed.

    python bench/kmeans.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.exact import DIM, SKETCHY, Floats, Result, World, restart_unpinned, say, show

if __name__ == "__main__":
    restart_unpinned()

import numpy as np
from numpy.typing import NDArray

from eyespot.extras import install_line
from eyespot.kernels.kmeans import KMeans, cluster, drawn

Task = Callable[[], Floats]  # clusters, and gives the centroids

SIZES = (20_000, 500), (80_000, 2_000)
TRIALS, ITERATIONS = (7, 3), 10
TIME_GOAL, QUICK_GOAL, INERTIA_GOAL = 0.7, 2.0, 1.001
PEER = "faiss Kmeans"


def ours(vectors: Floats, clusters: int, seed: int) -> Task:
    return lambda: cluster(vectors, KMeans(clusters, ITERATIONS, seed, threads=1)).centroids


def theirs(vectors: Floats, clusters: int, seed: int) -> Task:
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20
    faiss.omp_set_num_threads(1)
    first = vectors[drawn(len(vectors), clusters, seed)]
    options = {"max_points_per_centroid": len(vectors), "min_points_per_centroid": 1}

    def task() -> Floats:
        made = faiss.Kmeans(DIM, clusters, niter=ITERATIONS, seed=seed, **options)
        made.train(vectors, init_centroids=first)
        return np.asarray(made.centroids, np.float32)

    return task


def cpu(task: Task) -> tuple[float, Floats]:
    start = time.process_time()
    centroids = task()
    return time.process_time() - start, centroids


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


def raced(vectors: Floats, clusters: int, trials: int) -> NDArray[np.float64]:
    """For each trial, which has its own seed: time of the peer, ours, the peer again; inertia of the peer and ours."""
    told = []
    for seed in range(trials):
        peer, own = theirs(vectors, clusters, seed), ours(vectors, clusters, seed)
        (before, centroids), (seconds, found), (after, _) = cpu(peer), cpu(own), cpu(peer)
        told.append((before, seconds, after, inertia(vectors, centroids), inertia(vectors, found)))
    return np.array(told)


def judged(name: str, ratios: NDArray[np.float64], goal: float) -> Result:
    p10, middle, p90 = np.percentile(ratios, (10, 50, 90)).tolist()
    return Result(name, middle, PEER, p10, p90, len(ratios), goal)


def results(quick: bool) -> Iterator[Result]:
    world, seconds = World(), []
    cluster(world.draw(100), KMeans(20, threads=1))  # compiled before the clock runs
    for (rows, clusters), trials in zip(SIZES, TRIALS, strict=True):
        rows, clusters = (rows // 10, clusters // 10) if quick else (rows, clusters)
        before, own, after, expected, found = raced(world.draw(rows), clusters, trials).T
        low, high = np.percentile(np.concatenate([before, after]), (10, 90))
        if high / low > SKETCHY:
            raise SystemExit(f"the machine is too busy to tell (baseline p90/p10 {high / low:.1f}); run again")
        name = f"{clusters} clusters of {rows} rows"
        say(f"{name}: ours {np.median(own):.2f} s, {PEER} {np.median(before):.2f} s of CPU time")
        seconds.append((float(np.median(own)), float(np.median(before))))
        yield judged(f"time, {name}", 2 * own / (before + after), QUICK_GOAL if quick else TIME_GOAL)
        yield judged(f"inertia, {name}", found / expected, INERTIA_GOAL)
    grown, peers = (large / small for small, large in zip(*seconds, strict=True))
    say(f"sixteen times the work takes {grown:.1f} times as long, {PEER} {peers:.1f} times")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    options = parser.parse_args()
    met = True
    for result in results(options.quick):
        show(result, options)
        met &= result.met
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('faiss')}")
        sys.exit(4)
    except SystemExit as end:
        if isinstance(end.code, str):
            say(end.code)
            sys.exit(4)
        raise
