"""Exact search under adapted queries against a plain scan, the formula rewritten in numpy, and the dense map in torch.

A million clustered unit vectors of 768 dimensions (--quick: a tenth), maps of rank 64. `paper` maps, without identity,
in three scenarios: near-orthonormal factors, the principal directions of the query's neighbours, Gaussian factors.
`released` maps, with identity and Frobenius norms, in three: columns that share a direction as trained ones do, that
half share it, that share none. A gate is the median over the scenarios of a preset. The peer runs before and after each
call, in random order; CPU time on one thread, wall time on two. At last the growth, from a tenth of the rows to twice
as many. Exit code 4 if a goal is missed.

    python bench/quari.py [--quick] [--json] [--only races|growth]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

BOTH = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}


def restart_unpinned() -> None:
    """A pinned OPENBLAS_CORETYPE slows the peers, and BLAS reads it only once."""
    wanted = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"} | BOTH
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


if __name__ == "__main__":
    restart_unpinned()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from bench.exact import DIM, SKETCHY, Floats, Result, World, say, show  # noqa: E402
from eyespot.adapters.quari.scoring import AdaptedIndex, factored_scores  # noqa: E402
from eyespot.extras import install_line  # noqa: E402
from eyespot.kernels.codes import quantise  # noqa: E402
from eyespot.types import AdaptedQuery  # noqa: E402

Search = Callable[[AdaptedQuery, int], object]
Reals = NDArray[np.float64]

RANK, TRIALS, SLOW_TRIALS, CHECKED = 64, 11, 3, 2
PAPER = ("near-orthonormal", "principal", "gaussian")
RELEASED = ("shared", "half shared", "not shared")
CHUNK = 50_000  # rows the peers take at a time


# -- the maps -----------------------------------------------------------------------------------------------------


@dataclass
class Maps:
    """Fresh queries and maps of every scenario."""

    world: World
    sample: Floats  # (n, dim), rows of the gallery
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2))
    rank: int = RANK

    def draw(self, scenario: str) -> AdaptedQuery:
        query = self.world.draw(1, noise=0.75)[0].astype(np.float64)
        if scenario in RELEASED:
            return self._released(query, RELEASED.index(scenario) / 2)
        if scenario == "gaussian":
            return adapted(query, self._noise(1), self._noise(1), 0.0)
        left, right = self._orthonormal() if scenario == "near-orthonormal" else self._principal(query)
        bent = query @ left @ right.T
        return adapted(unit(bent) + query * (scenario == "near-orthonormal"), left, right, 0.0)

    def _orthonormal(self) -> tuple[Reals, Reals]:
        left, right = (np.linalg.qr(self.rng.standard_normal((DIM, self.rank)))[0] for _ in range(2))
        return np.asarray(left + self._noise(0.3)), np.asarray(right + self._noise(0.3))

    def _principal(self, query: Reals) -> tuple[Reals, Reals]:
        near = self.sample[np.argsort(-(self.sample @ query.astype(np.float32)))[:1000]].astype(np.float64)
        left = np.linalg.svd(near - near.mean(axis=0), full_matrices=False)[2][: self.rank].T + self._noise(0.05)
        return left, left + self._noise(0.05)

    def _released(self, query: Reals, own: float) -> AdaptedQuery:
        """Each column is a direction that all share and one of its own."""
        left, right = (self._columns(own) for _ in range(2))
        target = self.world.draw(1, noise=0.75)[0].astype(np.float64)
        return adapted(query + target, 0.8 * left, right, 1.0)

    def _columns(self, own: float) -> Reals:
        shared = unit(self.world.draw(1)[0].astype(np.float64))[:, None]
        columns = (1 - own) * shared + self._noise(0.15 + own * 0.85)
        return np.asarray(columns / np.linalg.norm(columns))

    def _noise(self, length: float) -> Reals:
        return np.asarray(self.rng.standard_normal((DIM, self.rank)) * (length / DIM**0.5))


def unit(vector: Reals) -> Reals:
    return np.asarray(vector / np.linalg.norm(vector))


def adapted(query: Reals, left: Reals, right: Reals, identity: float) -> AdaptedQuery:
    asked, before, behind = (np.asarray(part, np.float32) for part in (unit(query), left, right))
    return AdaptedQuery(asked, before, behind, identity)


# -- the peers ----------------------------------------------------------------------------------------------------


def best(scores: Floats, k: int) -> NDArray[np.int64]:
    return np.argpartition(-scores, k)[:k]


def plain(vectors: Floats) -> Search:
    return lambda view, k: best(vectors @ view.query, k)


def rewritten(vectors: Floats) -> Search:
    """Without the dense map: one product for the numerator, those with the factors for the length."""

    def search(view: AdaptedQuery, k: int) -> object:
        direction = view.identity * view.query + view.left @ (view.right.T @ view.query)
        spread = view.right.T @ view.right
        scores = np.empty(len(vectors), np.float32)
        for start in range(0, len(vectors), CHUNK):
            rows = vectors[start : start + CHUNK]
            inner = rows @ view.left  # (n, r)
            squares = np.einsum("ij,ij->i", inner @ spread, inner)
            if view.identity:
                squares += np.einsum("ij,ij->i", rows, rows) + 2 * np.einsum("ij,ij->i", inner, rows @ view.right)
            scores[start : start + CHUNK] = rows @ direction / np.sqrt(squares)
        return best(scores, k)

    return search


def dense(vectors: Floats) -> Search:
    """As the released code scores: x @ W, each row to unit length, times the query."""
    import torch

    def search(view: AdaptedQuery, k: int) -> object:
        query, left, right = (torch.from_numpy(part) for part in view[:3])
        matrix = view.identity * torch.eye(DIM) + left @ right.T
        parts = (torch.from_numpy(vectors[start : start + CHUNK]) for start in range(0, len(vectors), CHUNK))
        with torch.inference_mode():
            mapped = (torch.nn.functional.normalize(part @ matrix, dim=1) @ query for part in parts)
            return torch.cat(list(mapped)).topk(k)

    return search


# -- timing -------------------------------------------------------------------------------------------------------


@dataclass
class Race:
    """Ours against a peer in the scenarios of one preset, a fresh map each time."""

    name: str
    scenarios: Sequence[str]
    peer: str
    goal: float
    theirs: Search
    ours: Search
    k: int = 50
    threads: int = 1
    trials: int = TRIALS

    def run(self, maps: Maps) -> Result:
        order = [scenario for scenario in self.scenarios for _ in range(self.trials)]
        maps.rng.shuffle(order)
        with threadpool_limits(self.threads):
            for search in (self.theirs, self.ours):
                search(maps.draw(self.scenarios[0]), self.k)  # warm
            times = np.array([self._once(maps.draw(scenario)) for scenario in order])  # (trials, 3)
        return self._judged(np.array(order), times)

    def _once(self, view: AdaptedQuery) -> tuple[float, float, float]:
        before, ours, after = (self._timed(search, view) for search in (self.theirs, self.ours, self.theirs))
        return before, ours, after

    def _timed(self, search: Search, view: AdaptedQuery) -> float:
        clock = time.process_time if self.threads == 1 else time.perf_counter
        start = clock()
        search(view, self.k)
        return clock() - start

    def _judged(self, order: NDArray[Any], times: Reals) -> Result:
        before, ours, after = times.T
        low, high = np.percentile(np.concatenate([before, after]), (10, 90))
        if high / low > SKETCHY:
            raise SystemExit(
                f"{self.name}: the machine is too busy to tell (baseline p90/p10 {high / low:.1f}); run again"
            )
        ratios = 2 * ours / (before + after)
        middles = {scenario: float(np.median(ratios[order == scenario])) for scenario in self.scenarios}
        told = ", ".join(f"{scenario} {middle:.3f}" for scenario, middle in middles.items())
        say(f"{self.name}: ours {1e3 * np.median(ours):.1f} ms, {self.peer} {1e3 * np.median(before):.1f} ms; {told}")
        p10, p90 = np.percentile(ratios, (10, 90))
        middle = float(np.median(list(middles.values())))
        return Result(self.name, middle, self.peer, float(p10), float(p90), len(times), self.goal)


@dataclass
class Bench:
    """The gallery, our index over it on one thread and on two, and the races."""

    vectors: Floats
    maps: Maps

    @cached_property
    def indexes(self) -> dict[int, AdaptedIndex]:
        start = time.process_time()
        codes = [quantise(self.vectors, threads=1)]
        say(f"codes made in {time.process_time() - start:.1f} s of CPU time (compiling included if never done before)")
        made = {threads: AdaptedIndex(self.vectors, codes, threads=threads, small=0) for threads in (1, 2)}
        for index in made.values():
            index.prepare()
        return made

    def ours(self, threads: int = 1) -> Search:
        index = self.indexes[threads]
        return lambda view, k: index.search([view], k)

    def results(self) -> Iterator[Callable[[], Result]]:
        yield self.memory
        yield self.disagreement
        for race in self.races():
            yield lambda race=race: race.run(self.maps)  # type: ignore[misc]

    def races(self) -> Iterator[Race]:
        scan, numpy, one, two = plain(self.vectors), rewritten(self.vectors), self.ours(1), self.ours(2)
        for preset, scenarios in (("paper", PAPER), ("released", RELEASED)):
            against = scenarios, "plain float32 scan in numpy"
            yield Race(f"{preset}, top 50, one thread", *against, 1.4, scan, one)
            yield Race(f"{preset}, top 50, two threads", *against, 1.1, scan, two, threads=2)
            yield Race(f"{preset}, top 1000, one thread", *against, 2.0, scan, one, k=1000)
            peer = "the formula without the dense map, numpy"
            yield Race(f"{preset}, top 50, rewritten", scenarios, peer, 0.2, numpy, one, trials=SLOW_TRIALS)
            peer = "x @ W, normalised, times the query, torch"
            yield Race(f"{preset}, top 50, dense", scenarios[:1], peer, 0.025, dense(self.vectors), one, trials=2)

    def memory(self) -> Result:
        """Codes and lengths beside the vectors."""
        beside = sum(codes.nbytes for codes in self.indexes[1].codes)
        share = beside / self.vectors.nbytes
        return Result("memory beside the vectors", share, "float32 vectors", share, share, 1, 0.3)

    def disagreement(self) -> Result:
        """The share of searches whose top 50 is not that of the formula in float64 (differences under 1e-6 aside)."""
        wrong = [self._wrong(self.maps.draw(scenario)) for scenario in (*PAPER, *RELEASED) for _ in range(CHECKED)]
        share = float(np.mean(wrong))
        return Result("answers unlike float64", share, "the formula in float64", share, share, len(wrong), 0.0)

    def _wrong(self, view: AdaptedQuery) -> bool:
        found, chunks = self.indexes[2].search([view], 50), range(0, len(self.vectors), CHUNK)
        true = np.concatenate([factored_scores(view, self.vectors[start : start + CHUNK]) for start in chunks])
        off = (
            np.abs(true[found.rows[0]] - -np.sort(-true)[:50]).max(),
            np.abs(true[found.rows[0]] - found.scores[0]).max(),
        )
        return bool(max(off) > 1e-6)


SIZES = (1, 5, 10, 20)  # tenths of the rows that are raced over


def growth(vectors: Floats, maps: Maps) -> Iterator[Callable[[], Result]]:
    """CPU time a row over all sizes: 1 where it grows with the rows and no faster."""
    tenth = len(vectors) // SIZES[-1]
    sizes = {size * tenth: AdaptedIndex(vectors[: size * tenth], threads=1, small=0, patience=0) for size in SIZES}
    times: dict[int, list[float]] = {rows: [] for rows in sizes}
    for index in sizes.values():
        index.prepare()
    with threadpool_limits(1):
        for scenario in (*PAPER, *RELEASED) * 4:
            view = maps.draw(scenario)
            for rows, index in sizes.items():
                start = time.process_time()
                index.search([view], 50)
                times[rows].append(time.process_time() - start)
    a_row = {rows: np.array(taken) / rows for rows, taken in times.items()}
    say("; ".join(f"{rows} rows: {1e3 * np.median(taken):.1f} ms" for rows, taken in times.items()))
    few, all_but, twice = (SIZES[at] * tenth for at in (0, 2, 3))
    for more, less in ((all_but, few), (twice, all_but)):
        yield lambda more=more, less=less: _grown(more, less, a_row[more] / a_row[less])  # type: ignore[misc]


def _grown(more: int, less: int, ratios: Reals) -> Result:
    p10, middle, p90 = np.percentile(ratios, (10, 50, 90))
    name, peer = f"CPU time of a row of {more}", f"of a row of {less}"
    return Result(name, float(middle), peer, float(p10), float(p90), len(ratios), 1.1)


def results(rows: int, folder: Path, only: str | None) -> Iterator[Callable[[], Result]]:
    world = World()
    vectors = world.fill(folder / "vectors.npy", 2 * rows)
    say(f"{rows} vectors made to race over, and as many more for the growth")
    maps = Maps(world, np.array(vectors[: rows : max(1, rows // 20_000)]))
    if only != "growth":
        yield from Bench(vectors[:rows], maps).results()
    if only != "races":
        yield from growth(vectors, maps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--only", choices=("races", "growth"), help="half of it")
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for result in results(100_000 if options.quick else 1_000_000, Path(folder), options.only):
            told = result()
            show(told, options)
            met &= told.met
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('dev')}")
        sys.exit(4)
    except SystemExit as end:
        if isinstance(end.code, str):
            say(end.code)
            sys.exit(4)
        raise
