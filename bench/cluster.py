"""Workers on Ray against one process: the same answers, and the time these take with 1, 2, … workers.

Searches run over a gallery of clustered unit vectors of 768 dimensions in four mapped files (--quick: a tenth), one
thread a worker. A line is printed for each of: the overhead of one worker (plain and QuARI scans, against the same
search in this process on one thread), the scaling efficiency from one worker to as many as there are processors (QuARI
scans and embedding with the built-in encoder), and plain scans by all workers against a bare reading of the vectors by
as many threads. Whether the answers are the same is checked first: exit code 4 if not, or if a goal is missed.

    python bench/cluster.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.exact import DIM, Result, World, restart_unpinned, say, show

if __name__ == "__main__":
    restart_unpinned()

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms, sample
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.cluster.embedding import Crew
from eyespot.cluster.holding import Holding
from eyespot.cluster.starting import Cluster, connected
from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.opened import Gallery
from eyespot.indexes.exact import Exact
from eyespot.types import AdaptedQuery

K, TRIALS, RANK = 50, 15, 64
Ask = Callable[[int], Any]


def adapted(world: World, count: int) -> list[AdaptedQuery]:
    """Adapted queries of the size of QuARI's, (dim, 64) a factor."""
    rng = np.random.default_rng(2)
    scale = np.float32(0.3 / np.sqrt(DIM))
    factors = scale * rng.standard_normal((count, 2, DIM, RANK), np.float32)
    return [AdaptedQuery(query, pair[0], pair[1], 1.0) for query, pair in zip(world.draw(count), factors, strict=True)]


# -- timing -------------------------------------------------------------------------------------------------------


def seconds(ask: Ask, trial: int) -> float:
    start = time.perf_counter()
    ask(trial)
    return time.perf_counter() - start


def ratios(ours: Ask, theirs: Ask) -> NDArray[np.float64]:
    """Ours over the mean of the peer before and after it, in wall time: what workers do is not this process's."""
    for trial in range(4):  # codes are made, and pages read
        ours(trial), theirs(trial)
    times = [(seconds(theirs, at), seconds(ours, at), seconds(theirs, at)) for at in range(TRIALS)]
    return np.array([2 * mine / (before + after) for before, mine, after in times])


def result(name: str, peer: str, goal: float, found: NDArray[np.float64]) -> Result:
    low, middle, high = np.percentile(found, [10, 50, 90])
    return Result(name, float(middle), peer, float(low), float(high), len(found), goal)


# -- searches -----------------------------------------------------------------------------------------------------


def searches(blocks: list[NDArray[np.float32]], world: World, cores: int) -> Iterator[Result]:
    queries, views = world.draw(TRIALS, noise=0.75), adapted(world, TRIALS)
    here, scan = Exact(blocks, threads=1, patience=0), AdaptedIndex(blocks, threads=1, patience=0)
    expected = [here.search(queries, K), scan.search(views, K)]
    with Holding(Cluster(1)) as one:
        held, held_scan = one.index(blocks), one.scan(blocks)
        refuse_others([held.search(queries, K), held_scan.search(views, K)], expected)
        plain = ratios(lambda at: held.search(queries[at : at + 1], K), lambda at: here.search(queries[at : at + 1], K))
        yield result("plain scan, one worker", "this process", 1.15, plain)
        bent = ratios(lambda at: held_scan.search([views[at]], K), lambda at: scan.search([views[at]], K))
        yield result("QuARI scan, one worker", "this process", 1.15, bent)
    with Holding(Cluster(cores)) as many:
        spread, spread_scan = many.index(blocks), many.scan(blocks)
        refuse_others([spread.search(queries, K), spread_scan.search(views, K)], expected)
        bent = ratios(lambda at: spread_scan.search([views[at]], K), lambda at: scan.search([views[at]], K))
        yield result(f"QuARI scan, {cores} workers, times {cores}", "this process", 1.25, cores * bent)
        bare = ratios(lambda at: spread.search(queries[at : at + 1], K), lambda _: read_all(blocks, cores))
        yield result(f"plain scan, {cores} workers", f"reading the vectors, {cores} threads", 1.15, bare)


def read_all(blocks: list[NDArray[np.float32]], threads: int) -> float:
    """The sum of all numbers: as fast as memory gives them."""
    parts = [part for block in blocks for part in np.array_split(block, threads)]
    with ThreadPoolExecutor(threads) as pool:
        return float(sum(pool.map(lambda part: part.sum(dtype=np.float32), parts)))


def refuse_others(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        if not (np.array_equal(one.rows, other.rows) and np.allclose(one.scores, other.scores, atol=1e-7)):
            raise SystemExit("the answers of workers are not those of one process")


# -- embedding ----------------------------------------------------------------------------------------------------


def embedding(folder: Path, cores: int) -> Iterator[Result]:
    """Indexing the sample photos, once for each number of workers; models are loaded before the clock starts."""
    encoder = rooms.load("encoders", "starter")
    times = {workers: [embed(folder, encoder, workers, trial) for trial in range(3)] for workers in (1, cores)}
    galleries = [bytes_of(folder / f"{workers}-0") for workers in times]
    if galleries[0] != galleries[1]:
        raise SystemExit("the galleries of workers differ")
    efficiency = np.array([cores * many / one for one, many in zip(times[1], times[cores], strict=True)])
    yield result(f"embedding, {cores} workers, times {cores}", "one worker", 1.25, efficiency)


def embed(folder: Path, encoder: Any, workers: int, trial: int) -> float:
    with Crew(Cluster(workers)) as crew:
        warm = str(next(sample.photos().glob("*.jpg")))
        index(folder / f"warm-{workers}-{trial}", [warm], [encoder], Options(hands=crew))
        start = time.perf_counter()
        index(folder / f"{workers}-{trial}", [str(sample.photos())], [encoder], Options(hands=crew))
        return time.perf_counter() - start


def bytes_of(gallery: Path) -> list[bytes]:
    stem = Gallery(gallery).stem()
    return [map_vectors(shard, stem).tobytes() for shard in shard_paths(gallery)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    asked = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    world, rows = World(), 100_000 if asked.quick else 1_000_000
    met = True
    with tempfile.TemporaryDirectory(dir=".") as place, connected("local", cores):
        folder = Path(place).resolve()
        blocks = [world.fill(folder / f"{part}.npy", rows // 4) for part in range(4)]
        for found in (*searches(blocks, world, cores), *embedding(folder, cores)):
            met &= found.met
            show(found, asked)
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SystemExit as end:
        if isinstance(end.code, str):
            say(end.code)
            sys.exit(4)
        raise
