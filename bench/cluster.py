"""Workers on Ray against one process: the same answers, and the time these take with 1, 2, … workers.

Searches run over four million clustered unit vectors of 768 dimensions in float16, mapped, with int8 codes on disk
(--quick: a tenth), one thread a worker. A line is printed for each of: the overhead of one worker (plain and QuARI
scans, against the same search in this process on one thread), the scaling efficiency from one process to as many
workers as there are processors (QuARI scans, and embedding with the built-in encoder, from one worker), and plain scans
by all workers against a bare reading of the vectors by as many threads. The same searches over a quarter of the rows
have no goal. Whether the answers are the same is checked first: exit code 4 if not, or if a goal is missed.

    python bench/cluster.py [--quick] [--json] [--folder DIR] [--only searches|embedding]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # of this process too: threads of BLAS would wait at the workers' cost
from bench.exact import DIM, Result, restart_unpinned, say, show

if __name__ == "__main__":
    restart_unpinned()

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench.scale import Made
from eyespot import rooms, sample
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.cluster.ray_index import RayBackend
from eyespot.cluster.starting import Cluster, connected
from eyespot.cluster.workers import WorkerPool
from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.view import Gallery
from eyespot.indexes.exact import Exact
from eyespot.search.plan.measuring import SyntheticVectors

K, TRIALS, BLOCKS = 50, 15, 4
Ask = Callable[[int], Any]


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


def searches(made: Made, cores: int) -> Iterator[Result]:
    """Those with goals over all blocks; over the first alone they are only told."""
    for count in (1, BLOCKS):
        for found in _searches(made, count, cores):
            named = replace(found, name=f"{sum(map(len, made.blocks[:count])):,} rows: {found.name}")
            if count == BLOCKS:
                yield named
            else:
                say(f"{named.name}: {named.ratio:.3f} ({named.p10:.3f}-{named.p90:.3f}) of {named.peer}")


def _searches(made: Made, count: int, cores: int) -> Iterator[Result]:
    blocks, codes, world = made.blocks[:count], made.codes[:count], made.world
    queries, views = world.draw(TRIALS, noise=0.75), [world.adapted() for _ in range(TRIALS)]
    here, scan = Exact(blocks, codes, threads=1), AdaptedIndex(blocks, codes, threads=1)
    expected = [here.search(queries, K), scan.search(views, K)]
    with RayBackend(Cluster(1)) as one:
        held, held_scan = one.index(blocks, codes), one.scan(blocks, codes)
        refuse_others([held.search(queries, K), held_scan.search(views, K)], expected)
        plain = ratios(lambda at: held.search(queries[at : at + 1], K), lambda at: here.search(queries[at : at + 1], K))
        yield result("plain scan, one worker", "this process", 1.15, plain)
        bent = ratios(lambda at: held_scan.search([views[at]], K), lambda at: scan.search([views[at]], K))
        yield result("QuARI scan, one worker", "this process", 1.15, bent)
    with RayBackend(Cluster(cores)) as many:
        spread, spread_scan = many.index(blocks, codes), many.scan(blocks, codes)
        refuse_others([spread.search(queries, K), spread_scan.search(views, K)], expected)
        bent = ratios(lambda at: spread_scan.search([views[at]], K), lambda at: scan.search([views[at]], K))
        yield result(f"QuARI scan, {cores} workers, times {cores}", "this process", 1.25, cores * bent)
        bare = ratios(lambda at: spread.search(queries[at : at + 1], K), lambda _: read_all(blocks, cores))
        yield result(f"plain scan, {cores} workers", f"reading the vectors, {cores} threads", 1.15, bare)


def read_all(blocks: list[NDArray[Any]], threads: int) -> int:
    """The sum of all bytes, eight at a time: as fast as memory gives them."""
    parts = [part.view(np.int64) for block in blocks for part in np.array_split(block, threads)]
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda part: int(part.sum()), parts))


def refuse_others(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        if not (np.array_equal(one.rows, other.rows) and np.allclose(one.scores, other.scores, atol=1e-7)):
            raise SystemExit("the answers of workers are not those of one process")


# -- embedding ----------------------------------------------------------------------------------------------------


def embedding(folder: Path, cores: int) -> Iterator[Result]:
    """Indexing the sample photos and their quarters, once for each number of workers; models are loaded before that."""
    encoder, photos = rooms.load("encoders", "starter"), folder / "photos"
    cut_up(photos)
    times: dict[int, list[float]] = {1: [], cores: []}
    for trial in range(3):
        for workers, taken in times.items():
            taken.append(embed(folder, photos, encoder, (workers, trial)))
    galleries = [bytes_of(folder / f"{workers}-0") for workers in times]
    if galleries[0] != galleries[1]:
        raise SystemExit("the galleries of workers differ")
    efficiency = np.array([cores * many / one for one, many in zip(times[1], times[cores], strict=True)])
    yield result(f"embedding, {cores} workers, times {cores}", "one worker", 1.25, efficiency)


def cut_up(photos: Path) -> None:
    """The sample photos, each whole and in four parts: batches enough that nobody waits long for the last."""
    photos.mkdir()
    for place in sorted(sample.photos().glob("*.jpg")):
        with Image.open(place) as photo:
            wide, high = photo.size
            photo.save(photos / place.name, quality=90)
            for at in range(4):
                left, top = at % 2 * (wide // 2), at // 2 * (high // 2)
                part = photo.crop((left, top, left + wide // 2, top + high // 2))
                part.save(photos / f"{place.stem}-{at}.jpg", quality=90)


def embed(folder: Path, photos: Path, encoder: Any, run: tuple[int, int]) -> float:
    workers, trial = run
    with WorkerPool(Cluster(workers)) as crew:
        warm = str(next(photos.glob("*.jpg")))
        index(folder / f"warm-{workers}-{trial}", [warm], [encoder], Options(hands=crew))
        start = time.perf_counter()
        index(folder / f"{workers}-{trial}", [str(photos)], [encoder], Options(hands=crew))
        return time.perf_counter() - start


def bytes_of(gallery: Path) -> list[bytes]:
    stem = Gallery(gallery).stem()
    return [map_vectors(shard, stem).tobytes() for shard in shard_paths(gallery)]


def all_of(part: str, folder: Path, cores: int, quick: bool) -> Iterator[Result]:
    if part == "embedding":
        yield from embedding(folder, cores)
        return
    made = Made.of(SyntheticVectors(DIM), folder, 100_000 if quick else 1_000_000, BLOCKS)
    yield from searches(made, cores)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--folder", type=Path, help="where there is room for 10 GB; default: this folder")
    parser.add_argument("--only", choices=("searches", "embedding"), help="one of the two parts")
    asked = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    met, parts = True, [asked.only] if asked.only else ["searches", "embedding"]
    with tempfile.TemporaryDirectory(dir=asked.folder or ".") as place, connected("local", cores):
        folder = Path(place).resolve()
        for part in parts:
            for found in all_of(part, folder, cores, asked.quick):
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
