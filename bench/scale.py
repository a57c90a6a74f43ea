"""Exact search and QuARI over galleries of millions on one machine: time by size, memory, and what a plan foretells.

Clustered unit vectors of 768 dimensions, in float16 with int8 codes, on disk and mapped: 1, 2, 5 and 10 million rows
(--quick: a tenth). While they are searched the process may take no more anonymous memory than a quarter of the vectors'
bytes. Then 5 million rows of 1152, the size of INQUIRE's collection under its SigLIP encoder, beside faiss's flat
indexes over a fifth of the rows, times five. The full size takes 24 GB of disk at a time; what is made is removed.
`--slopes FILE` writes what was measured as the table that `eyespot plan` multiplies. Exit code 4 if a goal is missed.

    python bench/scale.py [--quick] [--json] [--folder DIR] [--slopes FILE] [--only growth|inquire]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any


def restart_unpinned() -> None:
    """A pinned OPENBLAS_CORETYPE slows the peers, and BLAS reads it only once."""
    if "OPENBLAS_CORETYPE" in os.environ:
        wanted = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


if __name__ == "__main__":
    restart_unpinned()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from bench.exact import Result, say, show  # noqa: E402
from eyespot.adapters.quari.scoring import AdaptedIndex  # noqa: E402
from eyespot.extras import install_line  # noqa: E402
from eyespot.indexes.exact import Exact  # noqa: E402
from eyespot.kernels.codes import Codes, write_codes  # noqa: E402
from eyespot.search.plan.arithmetic import PlanRequest, seconds_of, ways  # noqa: E402
from eyespot.search.plan.measuring import SyntheticVectors, as_toml, line, rechecked, this_machine  # noqa: E402
from eyespot.search.plan.slopes import Line, Slopes, read_slopes  # noqa: E402

DIM, WIDE, K, TRIALS, SLOW_TRIALS = 768, 1152, 50, 15, 3
SIZES, BLOCK = (1, 2, 5, 10), 1_000_000  # of the blocks that are there
SEEN = (1, 5)  # sizes that a plan is made of, to be held against the others
SLOW = ("float16",)
CLUSTERS = 20_000
BOUND = 4  # a gallery this many times the memory that searching may take
PIECE = 20_000


# -- the galleries --------------------------------------------------------------------------------------------------


@dataclass
class Made:
    """Blocks of vectors on disk with their codes, and how long coding took."""

    world: SyntheticVectors
    blocks: list[NDArray[Any]]
    codes: list[Codes]
    coding: float

    @classmethod
    def of(cls, world: SyntheticVectors, folder: Path, rows: int, count: int) -> Made:
        made = cls(world, [], [], 0.0)
        for at in range(count):
            block = world.fill(folder / f"{at}.npy", rows)
            start = time.perf_counter()
            write_codes(block, folder / str(at))
            made.coding += time.perf_counter() - start
            made.blocks.append(block)
            made.codes.append(Codes.load(folder / str(at)))
            say(f"block {at + 1} of {count}: {rows} rows of {world.dim} made and coded")
        return made

    def searches(self, blocks: int) -> dict[str, Callable[[], object]]:
        """The ways to ask the first so many blocks a fresh query."""
        vectors, codes, world = self.blocks[:blocks], self.codes[:blocks], self.world
        int8, plain = Exact(vectors, codes, small=0), Exact(vectors, patience=float("inf"))
        adapted = AdaptedIndex(vectors, codes, small=0)
        return {  # the vectors themselves first: later the codes would hold their place in memory
            "float16": lambda: plain.search(world.query(), K),
            "int8": lambda: int8.search(world.query(), K),
            "quari": lambda: adapted.search([world.adapted()], K),
        }

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)


def times(search: Callable[[], object], trials: int) -> list[float]:
    """Seconds of each call, after one that is not counted."""
    search()
    found = []
    for _ in range(trials):
        start = time.perf_counter()
        search()
        found.append(time.perf_counter() - start)
    return found


# -- memory ---------------------------------------------------------------------------------------------------------


class Anonymous:
    """The most memory that is no file's, looked at every few milliseconds; where there is no /proc, zero."""

    def __init__(self) -> None:
        self.most, self.before, self._over = 0, anonymous(), threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Anonymous:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, anonymous() - self.before)


def anonymous() -> int:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(one.split()[1]) for one in lines if one.startswith("RssAnon")), 0)


def limit_to(more: int) -> None:
    """No more anonymous memory than now and so many bytes: asking for it fails then."""
    lines = Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else []
    now = next((1024 * int(one.split()[1]) for one in lines if one.startswith("VmData")), 0)
    if now:
        resource.setrlimit(resource.RLIMIT_DATA, (now + more, resource.getrlimit(resource.RLIMIT_DATA)[1]))


# -- growth with the size, and the plan -----------------------------------------------------------------------------


def growth(folder: Path, rows: int, known: Slopes) -> Iterator[tuple[Result, Slopes]]:
    """How time and memory grow from the first size to the last, and whether two of them foretell the others."""
    made = Made.of(SyntheticVectors(DIM, CLUSTERS), folder, rows, SIZES[-1])
    yield disagreement(made), known
    searches = {size: made.searches(size) for size in SIZES}
    for name, search in searches[SIZES[0]].items():
        search()  # compiles, and starts what threads there are
        say(f"{name} ready")
    limit_to(made.nbytes // BOUND)
    with Anonymous() as memory:
        found = in_turn(searches)
    for name, size in product(found, SIZES):
        say(f"{size * rows} rows, {name}: {1e3 * np.median(found[name][size]):.1f} ms a query")
    share = memory.most / made.nbytes
    slopes = told(known, made, found, rows)
    yield Result("anonymous memory while searching", share, "the vectors", share, share, 1, 1 / BOUND), slopes
    for name in found:
        yield linear(name, found[name]), slopes
        yield foretold(name, found[name], rows, slopes), slopes
    yield disk(made, folder, rows), slopes


def in_turn(searches: dict[int, dict[str, Callable[[], object]]]) -> dict[str, dict[int, list[float]]]:
    """Seconds of each search at each size; sizes take turns, so that a slow minute of the machine is all of theirs.

    One kind of search after the other: the files of all together may be more than memory keeps.
    """
    found: dict[str, dict[int, list[float]]] = {name: {size: [] for size in SIZES} for name in searches[SIZES[0]]}
    for name, taken in found.items():
        for _, size in product(range(SLOW_TRIALS if name in SLOW else TRIALS), SIZES):
            taken[size] += times(searches[size][name], 1)
    return found


def disagreement(made: Made) -> Result:
    """Of a few queries over the first block, the share whose top 50 is not that of a float64 scan."""
    queries = made.world.draw(4, noise=0.75)
    found, block = Exact(made.blocks[:1], made.codes[:1], small=0).search(queries, K), made.blocks[0]
    spans = range(0, len(block), PIECE)
    true = np.concatenate([block[at : at + PIECE].astype(np.float64) @ queries.T.astype(np.float64) for at in spans])
    best = -np.sort(-true, axis=0)[:K].T
    wrong = np.abs(np.take_along_axis(true.T, found.rows, axis=1) - best).max(axis=1) > 1e-9
    share = float(wrong.mean())
    return Result("answers unlike float64", share, "float64 scan of the float16 vectors", share, share, 4, 0.0)


def linear(name: str, found: dict[int, list[float]]) -> Result:
    """Seconds of a row at the last size over those at the first."""
    first, last = np.array(found[SIZES[0]]) / SIZES[0], np.array(found[SIZES[-1]]) / SIZES[-1]
    p10, middle, p90 = np.percentile(last, (10, 50, 90)) / np.median(first)
    return Result(f"{name}: seconds of a row, all", float(middle), "a tenth of them", p10, p90, len(last), 1.15)


def told(known: Slopes, made: Made, found: dict[str, dict[int, list[float]]], rows: int) -> Slopes:
    """The table of slopes, with lines through all sizes."""
    scan = {**known.scan, **{name: through(taken, rows, SIZES) for name, taken in found.items()}}
    build = {**known.build, "codes": made.coding / (sum(map(len, made.blocks)) * DIM) * 1e9}
    left = rechecked(made.blocks[0], made.codes[0], made.world)
    machine = this_machine()
    return replace(known, machine=machine, cores=os.cpu_count() or 1, scan=scan, build=build, rechecked=left)


def through(taken: dict[int, list[float]], rows: int, sizes: Sequence[int]) -> Line:
    """A line of the table, through some sizes."""
    return line([(size * rows * DIM, float(np.median(taken[size]))) for size in sizes])


def foretold(name: str, taken: dict[int, list[float]], rows: int, known: Slopes) -> Result:
    """How far off a plan by two sizes is at those it has not seen: the larger of plan over run and run over plan."""
    way = next(way for way in ways(DIM) if way.name == name)
    slopes = replace(known, seek=0.0, scan={**known.scan, name: through(taken, rows, SEEN)})
    ratios = []
    for size in set(SIZES) - set(SEEN):
        plan = seconds_of(PlanRequest(size * rows, DIM, 1, 1), slopes, way, 1)
        ratios.append(plan / float(np.median(taken[size])))
    off = float(max(max(ratio, 1 / ratio) for ratio in ratios))
    return Result(f"{name}: plan from two sizes", off, "runs at two others", min(ratios), max(ratios), 2, 1.25)


def disk(made: Made, folder: Path, rows: int) -> Result:
    """Bytes of vectors and codes on disk over those the plan says."""
    way = next(way for way in ways(DIM) if way.name == "int8")
    there = sum(place.stat().st_size for place in folder.iterdir())
    share = there / (way.kept * rows * len(made.blocks))
    return Result("bytes on disk", share, "the plan", share, share, 1, 1.01)


# -- INQUIRE's size, beside faiss -----------------------------------------------------------------------------------


def inquire(folder: Path, rows: int) -> Iterator[Result]:
    made = Made.of(SyntheticVectors(WIDE, CLUSTERS), folder, rows, 5)
    ours = times(made.searches(5)["int8"], TRIALS)
    say(f"{5 * rows} rows of {WIDE}, ours: {np.median(ours):.3f} s a query")
    for name, search in peers(made.blocks[0]).items():
        theirs = np.array(asked(search, made.world)) * 5
        say(f"{name}, {rows} rows: {np.median(theirs) / 5:.3f} s a query, so {np.median(theirs):.3f} s for all")
        p10, middle, p90 = np.percentile(np.array(ours) / np.median(theirs), (10, 50, 90))
        peer = f"faiss {name} over a fifth, times five"
        yield Result(f"{5 * rows} x {WIDE}, one query", middle, peer, p10, p90, TRIALS, 1.0)


def asked(search: Callable[[Any], object], world: SyntheticVectors) -> list[float]:
    return times(lambda: search(world.query()), TRIALS)


def peers(block: NDArray[Any]) -> dict[str, Callable[[Any], object]]:
    """faiss over the first block, by all its threads."""
    import faiss

    half = faiss.IndexScalarQuantizer(WIDE, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    flat = faiss.IndexFlatIP(WIDE)
    half.train(np.asarray(block[:1000], np.float32))
    for start in range(0, len(block), PIECE):
        piece = np.asarray(block[start : start + PIECE], np.float32)
        for index in (half, flat):
            index.add(piece)
    return {"IndexFlatIP": lambda q: flat.search(q, K), "IndexScalarQuantizer fp16": lambda q: half.search(q, K)}


# -- all of it ------------------------------------------------------------------------------------------------------


def results(options: Any, root: Path) -> Iterator[Result]:
    rows = BLOCK // 10 if options.quick else BLOCK
    if options.only != "growth":
        with tempfile.TemporaryDirectory(dir=root) as folder:
            yield from inquire(Path(folder), rows)
    if options.only != "inquire":
        with tempfile.TemporaryDirectory(dir=root) as folder:
            yield from kept(growth(Path(folder), rows, read_slopes()), options.slopes)


def kept(found: Iterator[tuple[Result, Slopes]], place: Path | None) -> Iterator[Result]:
    """The results, and then the slopes in their file."""
    for result, slopes in found:
        yield result
        if place is not None:
            place.write_text(as_toml(slopes), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--folder", type=Path, help="where there is room; default: the system's temporary folder")
    parser.add_argument("--slopes", type=Path, help="write the table of slopes here")
    parser.add_argument("--only", choices=("growth", "inquire"), help="one of the two parts")
    options, met = parser.parse_args(arguments), True
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="eyespot-scale-") as root:
        for result in results(options, Path(root)):
            show(result, options)
            met &= result.met
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('faiss')}")
        sys.exit(4)
