"""Exact search against faiss on one thread: CPU time of one query and of 128 at once, memory, and the answers.

A million clustered unit vectors of 768 dimensions (--quick: a tenth): 20,000 Gaussian clusters with a power-law
spectrum and a common offset; queries are held out and noisier. The peer runs before and after each call, in random
order; a ratio is our CPU time over the mean of the two. Exit code 4 if a goal is missed.

    python bench/exact.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def restart_unpinned() -> None:
    """A pinned OPENBLAS_CORETYPE slows the peers, and BLAS reads it only once."""
    wanted = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"} | ALONE
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


if __name__ == "__main__":
    restart_unpinned()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from eyespot.extras import install_line  # noqa: E402
from eyespot.indexes.exact import Exact, load, quantise  # noqa: E402

Floats = NDArray[np.float32]
Search = Callable[[Floats], object]

DIM, CLUSTERS, K, BATCH = 768, 20_000, 50, 128
SINGLE_TRIALS, BATCH_TRIALS, CHECKED = 41, 9, 200
SKETCHY = 2.0  # a baseline whose p90 is more than this many times its p10 says nothing


@dataclass(frozen=True)
class Result:
    """One line of the answer; ratio = ours / peer, smaller is better."""

    name: str
    ratio: float
    peer: str
    p10: float
    p90: float
    n: int
    goal: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


# -- the data -----------------------------------------------------------------------------------------------------


class World:
    """Clusters to draw vectors from, any number at a time."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        spectrum = np.arange(1, DIM + 1, dtype=np.float32) ** -0.5
        turn = np.linalg.qr(self._rng.standard_normal((DIM, DIM)))[0].astype(np.float32)
        self._mix = (spectrum / np.linalg.norm(spectrum))[:, None] * turn.T  # (dim, dim)
        offset = self._rng.standard_normal(DIM).astype(np.float32)
        self._centres = 0.8 * self._normal(CLUSTERS) + 0.5 * offset / np.linalg.norm(offset)

    def draw(self, count: int, noise: float = 0.6) -> Floats:
        vectors = noise * self._normal(count) + self._centres[self._rng.integers(0, CLUSTERS, count)]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)  # (count, dim)

    def fill(self, path: Path, rows: int) -> Floats:
        vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, DIM))
        for start in range(0, rows, 20_000):
            vectors[start : start + 20_000] = self.draw(min(20_000, rows - start))
        vectors.flush()
        mapped: Floats = np.load(path, mmap_mode="r")
        return mapped

    def _normal(self, count: int) -> Floats:
        return self._rng.standard_normal((count, DIM), dtype=np.float32) @ self._mix


# -- the peers ----------------------------------------------------------------------------------------------------


def peers(vectors: Floats) -> dict[str, Search]:
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20
    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(DIM)
    bytes8 = faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT)
    bytes8.train(np.ascontiguousarray(vectors[:50_000]))
    for start in range(0, len(vectors), 100_000):
        for index in (flat, bytes8):
            index.add(np.ascontiguousarray(vectors[start : start + 100_000]))
    refined = faiss.IndexRefineFlat(bytes8, faiss.swig_ptr(vectors))
    refined.k_factor = 4
    kept = (bytes8, vectors)  # the refined index only points at them
    return {"flat": lambda q: flat.search(q, K), "refined": lambda q: (refined.search(q, K), kept)}


# -- timing -------------------------------------------------------------------------------------------------------


@dataclass
class Race:
    """Ours against a peer, a batch of fresh queries each time."""

    name: str
    peer: str
    goal: float
    batch: int
    trials: int
    ours: Search
    theirs: Search

    def run(self, world: World) -> tuple[float, float, float]:
        queries = world.draw(self.batch, noise=0.75)
        before, ours, after = (cpu(search, queries) for search in (self.theirs, self.ours, self.theirs))
        return before, ours, after


def cpu(search: Search, queries: Floats) -> float:
    start = time.process_time()
    search(queries)
    return time.process_time() - start


def raced(races: list[Race], world: World) -> Iterator[Result]:
    order = [race for race in races for _ in range(race.trials)]
    np.random.default_rng(1).shuffle(order)
    for race in races:
        race.run(world)  # warm
    times: dict[str, list[tuple[float, float, float]]] = {race.name: [] for race in races}
    for race in order:
        times[race.name].append(race.run(world))
    for race in races:
        yield judged(race, np.array(times[race.name]))


def judged(race: Race, times: NDArray[np.float64]) -> Result:
    before, ours, after = times.T
    low, high = np.percentile(np.concatenate([before, after]), (10, 90))
    if high / low > SKETCHY:
        raise SystemExit(f"{race.name}: the machine is too busy to tell (baseline p90/p10 {high / low:.1f}); run again")
    say(f"{race.name}: ours {1e3 * np.median(ours):.1f} ms, {race.peer} {1e3 * np.median(before):.1f} ms of CPU time")
    p10, middle, p90 = np.percentile(2 * ours / (before + after), (10, 50, 90))
    return Result(race.name, float(middle), race.peer, float(p10), float(p90), len(times), race.goal)


# -- the answers, and the memory ------------------------------------------------------------------------------------


def disagreement(index: Exact, vectors: Floats, queries: Floats) -> Result:
    """The share of queries whose top 50 is not that of a float64 scan (differences under 1e-6 aside)."""
    found = index.search(queries, K)
    best = np.full((len(queries), K), -np.inf)
    exact = queries.astype(np.float64)
    for start in range(0, len(vectors), 20_000):
        scores = exact @ vectors[start : start + 20_000].astype(np.float64).T
        best = -np.sort(-np.concatenate([best, np.partition(scores, -K, axis=1)[:, -K:]], axis=1), axis=1)[:, :K]
    true = np.stack([vectors[rows].astype(np.float64) @ query for rows, query in zip(found.rows, exact, strict=True)])
    wrong = (np.abs(true - best) > 1e-6).any(axis=1) | (np.abs(found.scores - true) > 1e-6).any(axis=1)
    share = float(wrong.mean())
    return Result("answers unlike float64", share, "float64 scan", share, share, len(queries), 0.0)


def memory(index: Exact, vectors: Floats) -> Result:
    share = sum(codes.nbytes for codes in index.codes) / vectors.nbytes
    return Result("memory beside the vectors", share, "float32 vectors", share, share, 1, 0.3)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def results(rows: int, folder: Path) -> Iterator[Result]:
    world = World()
    vectors = world.fill(folder / "vectors.npy", rows)
    say(f"{rows} vectors made")
    start = time.process_time()
    index = load([vectors], codes=[quantise(vectors, threads=1)], threads=1, small=0)
    say(f"codes made in {time.process_time() - start:.1f} s of CPU time (compiling included if never done before)")
    yield memory(index, vectors)
    yield disagreement(index, vectors, world.draw(CHECKED, noise=0.75))
    faiss = peers(vectors)

    def ours(queries: Floats) -> object:
        return index.search(queries, K)

    one, many = (1, SINGLE_TRIALS, ours), (BATCH, BATCH_TRIALS, ours)
    yield from raced(
        [
            Race("one query, top 50", "faiss IndexFlatIP", 0.30, *one, faiss["flat"]),
            Race("one query, top 50, refined", "faiss SQ8 uniform + RefineFlat", 1.15, *one, faiss["refined"]),
            Race("128 queries, top 50", "faiss IndexFlatIP (BLAS from 20 queries)", 1.1, *many, faiss["flat"]),
        ],
        world,
    )


def show(result: Result, options: Any) -> None:
    if options.json:
        print(json.dumps(asdict(result)), flush=True)
        return
    verdict = "met" if result.met else "NOT MET"
    spread = f"({result.p10:.3f}-{result.p90:.3f}, n={result.n})"
    print(f"{result.name}: {result.ratio:.3f} {spread} of {result.peer}; goal {result.goal}: {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for result in results(100_000 if options.quick else 1_000_000, Path(folder)):
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
