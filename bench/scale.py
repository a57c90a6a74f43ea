"""Exact search and QuARI over galleries of millions on one machine: time by size, memory, and what a plan predicts.

Clustered unit vectors of 768 dimensions, in float16 with int8 codes, on disk and mapped: 1, 2, 5 and 10 million rows
(--quick: a tenth). During the searches the process may take at most a quarter of the vectors' bytes as anonymous
memory. Then 5 million rows of 1152, the size of INQUIRE's collection under its SigLIP encoder, against faiss's flat
indexes over a fifth of the rows, times five. The full size takes 24 GB of disk at a time, which are removed at the end.
It prints the lines of the table that `eyespot plan` multiplies (eyespot/search/plan.toml).

    python bench/scale.py [--quick] [--json] [--folder DIR] [--only growth|inquire]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import DIM, Command, Measurement, Race, SyntheticVectors, clusters, race, say, timed
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.indexes import CodedProducts
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import Codes, write_codes
from eyespot.search.plan import BILLION, GIB, costs, search_costs

WIDE, K, TRIALS, SLOW_TRIALS = 1152, 50, 20, 3
SIZES, BLOCK = (1, 2, 5, 10), 1_000_000  # of the blocks that are there
FITTED = (1, 5)  # sizes that a plan is made from, to be compared with the others
SLOW = ("float16",)
BOUND = 4  # a gallery this many times the memory that searching may take
PIECE = 20_000


# -- the galleries --------------------------------------------------------------------------------------------------


@dataclass
class CodedBlocks:
    """Blocks of vectors on disk with their codes, and how long coding took."""

    world: SyntheticVectors
    blocks: list[NDArray[Any]]
    codes: list[Codes]
    coding: float

    @classmethod
    def of(cls, world: SyntheticVectors, folder: Path, rows: int, count: int) -> CodedBlocks:
        made = cls(world, [], [], 0.0)
        for at in range(count):
            block = world.fill(folder / f"{at}.npy", rows)
            made.coding += timed(partial(write_codes, block, folder / str(at)), time.perf_counter)[0]
            made.blocks.append(block)
            made.codes.append(Codes.load(folder / str(at)))
            say(f"block {at + 1} of {count}: {rows} rows of {world.dim} made and coded")
        return made

    def searches(self, blocks: int) -> dict[str, Callable[[], object]]:
        """The ways to search the first blocks with a fresh query."""
        vectors, codes, world = self.blocks[:blocks], self.codes[:blocks], self.world
        int8, plain = Exact(vectors, codes, small=0), Exact(vectors, patience=float("inf"))
        adapted = AdaptedIndex(vectors, codes, small=0)
        return {  # the vectors first: later the codes would occupy the memory
            "float16": lambda: plain.search(world.query(), K),
            "int8": lambda: int8.search(world.query(), K),
            "quari": lambda: adapted.search([world.adapted()], K),
        }

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)


# -- memory ---------------------------------------------------------------------------------------------------------


class Anonymous:
    """The peak of anonymous memory, read every few milliseconds; zero where there is no /proc."""

    def __init__(self) -> None:
        self.most, self.before, self._over = 0, anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Anonymous:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, anonymous() - self.before)


def anonymous() -> int:
    return memory("RssAnon")


def memory(field: str) -> int:
    """A number of bytes in /proc/self/status."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def limit_to(more: int) -> None:
    """From here on at most this much more memory can be allocated than now."""
    if now := memory("VmData"):
        resource.setrlimit(resource.RLIMIT_DATA, (now + more, resource.getrlimit(resource.RLIMIT_DATA)[1]))


# -- growth with the size, and the plan -----------------------------------------------------------------------------

Times = dict[int, list[float]]  # seconds at each size


def growth(folder: Path, rows: int) -> Iterator[Measurement]:
    """How time and memory grow from the first size to the last, and whether two of them predict the others."""
    made = CodedBlocks.of(clusters(), folder, rows, SIZES[-1])
    yield disagreement(made)
    searches = {size: made.searches(size) for size in SIZES}
    for name, search in searches[SIZES[0]].items():
        search()  # compiles, and starts threads
        say(f"{name} ready")
    limit_to(made.nbytes // BOUND)
    with Anonymous() as peak:
        times = in_turn(searches)
    for name, size in product(times, SIZES):
        say(f"{size * rows} rows, {name}: {1e3 * np.median(times[name][size]):.1f} ms a query")
    for name, of_sizes in times.items():
        fixed, slope = through(of_sizes, rows, SIZES)
        say(f"[scan.{name}] fixed = {fixed:.3g}, slope = {slope * BILLION:.3g}")
    coded = CodedProducts(made.codes[:1], None)
    left = [len(coded.scan(made.world.query(), K, None)[0].rows) for _ in range(TRIALS)]
    say(f"rechecked = {np.mean(left):.0f}")
    yield Measurement.from_mean("anonymous memory while searching", peak.most / made.nbytes, "the vectors", 1 / BOUND)
    for name in times:
        yield linear(name, times[name])
        yield predicted(name, times[name], rows)
    images = rows * len(made.blocks)
    facts = images * costs()["other"]["facts"]
    kept = next(way for way in search_costs(images, DIM, latency=1, ram=64) if way.way == "int8").disk * GIB - facts
    size = sum(path.stat().st_size for path in folder.iterdir())
    yield Measurement.from_mean("bytes on disk", size / kept, "the plan", 1.01)


def in_turn(searches: dict[int, dict[str, Callable[[], object]]]) -> dict[str, Times]:
    """Seconds of each search at each size; sizes take turns, so that a slow minute of the machine affects all.

    One kind of search after the other: the files of all together may be more than memory holds.
    """
    seconds: dict[str, Times] = {name: {size: [] for size in SIZES} for name in searches[SIZES[0]]}
    for name, of_sizes in seconds.items():
        for _, size in product(range(SLOW_TRIALS if name in SLOW else TRIALS), SIZES):
            searches[size][name]()  # not counted: its files may have left memory
            of_sizes[size].append(timed(searches[size][name], time.perf_counter)[0])
    return seconds


def disagreement(made: CodedBlocks) -> Measurement:
    """The share of a few queries over the first block whose top 50 differs from that of a float64 scan."""
    queries = made.world.draw(4, noise=0.75)
    results, block = Exact(made.blocks[:1], made.codes[:1], small=0).search(queries, K), made.blocks[0]
    spans = range(0, len(block), PIECE)
    true = np.concatenate([block[at : at + PIECE].astype(np.float64) @ queries.T.astype(np.float64) for at in spans])
    best = -np.sort(-true, axis=0)[:K].T
    wrong = np.abs(np.take_along_axis(true.T, results.rows, axis=1) - best).max(axis=1) > 1e-9
    return Measurement.from_mean("answers unlike float64", wrong, "float64 scan of the float16 vectors", 0.0)


def linear(name: str, times: Times) -> Measurement:
    """Seconds of a row at the last size over those at the first."""
    first, last = np.array(times[SIZES[0]]) / SIZES[0], np.array(times[SIZES[-1]]) / SIZES[-1]
    return Measurement.from_trials(f"{name}: seconds of a row, all", last / np.median(first), "a tenth of them", 1.15)


def through(times: Times, rows: int, sizes: Sequence[int]) -> tuple[float, float]:
    """Seconds of a query and of a number: the line through some sizes, from zero where it begins below or falls."""
    numbers = np.array([size * rows * DIM for size in sizes], np.float64)
    seconds = np.array([np.median(times[size]) for size in sizes])
    slope, fixed = np.polyfit(numbers, seconds, 1)
    if fixed < 0 or slope <= 0:
        fixed, slope = 0.0, (seconds * numbers).sum() / (numbers**2).sum()
    return float(fixed), float(slope)


def predicted(name: str, times: Times, rows: int) -> Measurement:
    """How far off a line through two sizes is at the others: the larger of plan over run and run over plan."""
    fixed, slope = through(times, rows, FITTED)
    ratios = [(fixed + slope * size * rows * DIM) / float(np.median(times[size])) for size in set(SIZES) - set(FITTED)]
    off = float(max(max(ratio, 1 / ratio) for ratio in ratios))
    return Measurement(f"{name}: plan from two sizes", off, "runs at two others", min(ratios), max(ratios), 2, 1.25)


# -- INQUIRE's size, against faiss ----------------------------------------------------------------------------------


def inquire(folder: Path, rows: int) -> Iterator[Measurement]:
    """Ours over all blocks against faiss over the first, times five."""
    made = CodedBlocks.of(clusters(dim=WIDE), folder, rows, 5)
    index = Exact(made.blocks, made.codes, small=0)
    queries = [made.world.query() for _ in range(TRIALS + 1)]

    def ours(query: Any) -> object:
        return index.search(query, K)

    for name, theirs in peers(made.blocks[0]).items():
        peer = f"faiss {name} over a fifth"
        timing = Race(f"{5 * rows} x {WIDE}, one query", peer, ours, theirs, 1.0, time.perf_counter)
        yield from (replace(each.times(1 / 5), peer=f"{peer}, times five") for each in race([(timing, queries)]))


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


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows = BLOCK // 10 if options.quick else BLOCK
    if options.only != "growth":
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            yield from inquire(Path(folder), rows)
    if options.only != "inquire":
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            yield from growth(Path(folder), rows)


if __name__ == "__main__":
    command = Command(__doc__, fast=True)
    command.add_argument("--only", choices=("growth", "inquire"), help="one of the two parts")
    command.run(measurements)
