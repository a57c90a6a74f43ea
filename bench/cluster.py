"""Workers on Ray against one process: the same answers, and the time these take with 1, 2, … workers.

Searches run over four million clustered unit vectors of 768 dimensions in float16, mapped, with int8 codes on disk
(--quick: a tenth), one thread a worker. Measured are the overhead of one worker (plain and QuARI scans, against the
same search in this process on one thread); the scaling efficiency from one process to as many workers as there are
processors (QuARI scans, and embedding with the built-in encoder, from one worker); and plain scans by all workers
against a bare reading of the vectors by as many threads. The same searches over a quarter of the rows have no goal.
The answers are compared first.

    python bench/cluster.py [--quick] [--json] [--folder DIR] [--only searches|embedding]
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench.harness import BenchmarkError, Command, Measurement, Race, clusters, race, timed
from bench.scale import CodedBlocks
from eyespot import rooms, sample
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.view import Gallery
from eyespot.indexes.exact import Exact

K, TRIALS, WARM, BLOCKS = 50, 20, 4, 4
Search = Callable[[int], Any]  # with the query of this number


# -- searches -------------------------------------------------------------------------------------------------------


def searches(made: CodedBlocks, cores: int) -> Iterator[Measurement]:
    """With goals over all blocks, without over the first alone."""
    for count in (1, BLOCKS):
        for each in searches_over(made, count, cores):
            name = f"{sum(map(len, made.blocks[:count])):,} rows: {each.name}"
            yield replace(each, name=name, goal=each.goal if count == BLOCKS else None)


def searches_over(made: CodedBlocks, count: int, cores: int) -> Iterator[Measurement]:
    from eyespot.cluster.ray_index import RayBackend
    from eyespot.cluster.starting import Cluster

    blocks, codes, world = made.blocks[:count], made.codes[:count], made.world
    queries, views = world.draw(TRIALS + 1, noise=0.75), [world.adapted() for _ in range(TRIALS + 1)]
    here, scan = Exact(blocks, codes, threads=1), AdaptedIndex(blocks, codes, threads=1)
    expected = [here.search(queries, K), scan.search(views, K)]

    def plain(index: Any) -> Search:
        return lambda at: index.search(queries[at : at + 1], K)

    def adapted(index: Any) -> Search:
        return lambda at: index.search([views[at]], K)

    with RayBackend(Cluster(1)) as one:
        ray, ray_scan = one.index(blocks, codes), one.scan(blocks, codes)
        refuse_others([ray.search(queries, K), ray_scan.search(views, K)], expected)
        yield against("plain scan, one worker", "this process", 1.15, plain(ray), plain(here))
        yield against("QuARI scan, one worker", "this process", 1.15, adapted(ray_scan), adapted(scan))
    with RayBackend(Cluster(cores)) as many:
        ray, ray_scan = many.index(blocks, codes), many.scan(blocks, codes)
        refuse_others([ray.search(queries, K), ray_scan.search(views, K)], expected)
        name = f"QuARI scan, {cores} workers, times {cores}"
        yield against(name, "this process", 1.25, adapted(ray_scan), adapted(scan)).times(cores)
        name, peer = f"plain scan, {cores} workers", f"reading the vectors, {cores} threads"
        yield against(name, peer, 1.15, plain(ray), lambda _: read_all(blocks, cores))


def against(name: str, peer: str, goal: float, ours: Search, theirs: Search) -> Measurement:
    """Wall time, since workers are not this process."""
    timing = Race(name, peer, ours, theirs, goal, time.perf_counter)
    for trial in range(WARM):  # codes are made, and pages read
        timing.warm(trial)
    return next(race([(timing, range(TRIALS + 1))]))


def read_all(blocks: list[NDArray[Any]], threads: int) -> int:
    """The sum of all bytes, eight at a time: as fast as memory can be read."""
    parts = [part.view(np.int64) for block in blocks for part in np.array_split(block, threads)]
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda part: int(part.sum()), parts))


def refuse_others(results: list[Any], expected: list[Any]) -> None:
    for ours, theirs in zip(results, expected, strict=True):
        if not (np.array_equal(ours.rows, theirs.rows) and np.allclose(ours.scores, theirs.scores, atol=1e-7)):
            raise BenchmarkError("the answers of workers differ from those of one process")


# -- embedding ----------------------------------------------------------------------------------------------------


def embedding(folder: Path, cores: int) -> Measurement:
    """Indexing the sample photos and their quarters, by one worker and by all; models are loaded before that."""
    encoder, photos = rooms.load("encoders", "starter"), folder / "photos"
    cut_up(photos)
    times: dict[int, list[float]] = {1: [], cores: []}
    for trial in range(3):
        for workers, seconds in times.items():
            seconds.append(embed(folder, photos, encoder, (workers, trial)))
    galleries = [bytes_of(folder / f"{workers}-0") for workers in times]
    if galleries[0] != galleries[1]:
        raise BenchmarkError("the galleries of one worker and of all differ")
    efficiency = cores * np.array(times[cores]) / times[1]
    return Measurement.from_trials(f"embedding, {cores} workers, times {cores}", efficiency, "one worker", 1.25)


def cut_up(photos: Path) -> None:
    """The sample photos, each whole and in four parts: enough batches that nobody waits long for the last."""
    photos.mkdir()
    for path in sorted(sample.photos().glob("*.jpg")):
        with Image.open(path) as photo:
            width, height = photo.size
            photo.save(photos / path.name, quality=90)
            for number in range(4):
                left, top = number % 2 * (width // 2), number // 2 * (height // 2)
                part = photo.crop((left, top, left + width // 2, top + height // 2))
                part.save(photos / f"{path.stem}-{number}.jpg", quality=90)


def embed(folder: Path, photos: Path, encoder: Any, run: tuple[int, int]) -> float:
    from eyespot.cluster.starting import Cluster
    from eyespot.cluster.workers import WorkerPool

    workers, trial = run
    with WorkerPool(Cluster(workers)) as pool:
        options, warm = Options(hands=pool), str(next(photos.glob("*.jpg")))
        index(folder / f"warm-{workers}-{trial}", [warm], [encoder], options)
        gallery = folder / f"{workers}-{trial}"
        return timed(lambda: index(gallery, [str(photos)], [encoder], options), time.perf_counter)[0]


def bytes_of(gallery: Path) -> list[bytes]:
    stem = Gallery(gallery).stem()
    return [map_vectors(shard, stem).tobytes() for shard in shard_paths(gallery)]


def measurements(options: Namespace) -> Iterator[Measurement]:
    from eyespot.cluster.starting import connected

    cores = len(os.sched_getaffinity(0))
    with connected("local", cores):
        if options.only != "embedding":
            rows = 100_000 if options.quick else 1_000_000
            yield from searches(CodedBlocks.of(clusters(5000), options.folder, rows, BLOCKS), cores)
        if options.only != "searches":
            yield embedding(options.folder, cores)


if __name__ == "__main__":
    # One thread for this process too: the workers would pay for the idle threads of its BLAS.
    command = Command(__doc__, threads=1, quick="a tenth of the rows")
    command.set_defaults(folder=Path())  # room for 10 GB
    command.add_argument("--only", choices=("searches", "embedding"), help="one of the two parts")
    command.run(measurements)
