"""Four measures of 10,000 queries with 1,000 hits each, against pytrec_eval and ir_measures.

Three times: from arrays of grades and scores against their dicts; from a Run and Qrels, whose images are joined by id
as theirs are; and from TREC files, end to end. A hundred thousand images, 10 to 190 judged for each query, a quarter of
them relevant. The peer runs before and after our calls, in random order; a ratio is our CPU time over the mean of the
two. --quick takes a tenth of the queries. The means are compared, too. Exit code 4 if a goal is missed.

    python bench/metrics.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
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

from eyespot.extras import install_line  # noqa: E402
from eyespot.metrics import Aligned, aligned, evaluate  # noqa: E402
from eyespot.runs import read_qrels, read_run, write_qrels, write_run  # noqa: E402
from eyespot.types import IdColumn, Qrels, Run  # noqa: E402

QUERIES, DEPTH, IMAGES = 10_000, 1000, 100_000
MEASURES = ("AP", "nDCG@50", "RR", "R@100")
TREC = {"AP": "map", "nDCG@50": "ndcg_cut_50", "RR": "recip_rank", "R@100": "recall_100"}
ASKED = {"map", "ndcg_cut.50", "recip_rank", "recall.100"}
TRIALS = 3  # rounds of the peer before and after several calls of ours, which take a hundredth
SKETCHY = 2.0  # a baseline whose p90 is more than this many times its p10 says nothing

Means = dict[str, float]
Task = Callable[[], Means]


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


def made(queries: int) -> tuple[Run, Qrels]:
    """Rankings with distinct scores, and judgements of which about a third were ranked."""
    rng = np.random.default_rng(0)
    query_ids = np.array([f"q{row}" for row in range(queries)], dtype=object)
    image_ids = np.array([f"{row:08d}.jpg" for row in range(IMAGES)], dtype=object)
    ranked = np.concatenate([rng.choice(IMAGES, DEPTH, replace=False) for _ in range(queries)])  # (hits,)
    scores = -np.sort(-rng.random((queries, DEPTH)), axis=1).ravel()  # (hits,)
    judged, of_query = [], []
    for query in range(queries):
        count = int(rng.integers(10, 190))
        near = rng.choice(ranked[query * DEPTH : (query + 1) * DEPTH], count // 3, replace=False)
        judged.append(np.union1d(near, rng.choice(IMAGES, count - len(near), replace=False)))
        of_query.append(np.full(len(judged[-1]), query))
    grades = (rng.random(sum(map(len, judged))) < 0.25).astype(np.int32)
    rows = IdColumn(query_ids, np.repeat(np.arange(queries), DEPTH))
    qrels = Qrels.from_columns(
        IdColumn(query_ids, np.concatenate(of_query)), IdColumn(image_ids.copy(), np.concatenate(judged)), grades
    )
    return Run.from_columns(rows, IdColumn(image_ids, ranked), scores), qrels


def as_dict(run: Run) -> dict[str, dict[str, float]]:
    return {query: {hit.image: hit.score for hit in run[query]} for query in run}


# -- the tasks ----------------------------------------------------------------------------------------------------


def ours_from_arrays(run: Run, qrels: Qrels) -> Task:
    known = aligned(run, qrels)
    arrays = known.offsets, known.grades, known.scores, known.ideal_offsets, known.ideal
    return lambda: evaluate(Aligned(known.queries, *arrays), None, MEASURES).means


def ours_in_memory(run: Run, qrels: Qrels) -> Task:
    return lambda: evaluate(run, qrels, MEASURES).means


def ours_from_files(run: Path, qrels: Path) -> Task:
    return lambda: evaluate(read_run(run, "trec"), read_qrels(qrels, "trec"), MEASURES).means


def pytrec(run: Any, qrels: Any) -> Means:
    import pytrec_eval

    rows = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    return {name: float(np.mean([row[TREC[name]] for row in rows.values()])) for name in MEASURES}


def ir(run: Any, qrels: Any) -> Means:
    import ir_measures

    wanted = [ir_measures.parse_measure(name) for name in MEASURES]
    return {str(name): float(mean) for name, mean in ir_measures.calc_aggregate(wanted, qrels, run).items()}


def pytrec_from_files(run: Path, qrels: Path) -> Task:
    import pytrec_eval

    def task() -> Means:
        with run.open() as ranked, qrels.open() as judged:
            return pytrec(pytrec_eval.parse_run(ranked), pytrec_eval.parse_qrel(judged))

    return task


def ir_from_files(run: Path, qrels: Path) -> Task:
    import ir_measures

    reading: Any = ir_measures  # its readers have no types
    return lambda: ir(reading.read_trec_run(str(run)), reading.read_trec_qrels(str(qrels)))


# -- timing -------------------------------------------------------------------------------------------------------


def cpu(task: Task) -> tuple[float, Means]:
    gc.collect()
    start = time.process_time()
    means = task()
    return time.process_time() - start, means


@dataclass
class Race:
    """Ours against a peer."""

    name: str
    peer: str
    goal: float
    ours: Task
    theirs: Task
    calls: int

    def run(self) -> tuple[float, list[float], float]:
        before, expected = cpu(self.theirs)
        ours = [cpu(self.ours) for _ in range(self.calls)]
        after, _ = cpu(self.theirs)
        for _, means in ours:
            if any(abs(means[name] - expected[name]) > 1e-9 for name in MEASURES):
                raise SystemExit(f"{self.name}: means {means} unlike {self.peer}'s {expected}")
        return before, [seconds for seconds, _ in ours], after


def raced(races: list[Race]) -> Iterator[Result]:
    order = [race for race in races for _ in range(TRIALS)]
    np.random.default_rng(1).shuffle(order)
    for race in races:
        race.ours()  # compiled before the clock runs
    times: dict[int, list[tuple[float, list[float], float]]] = {id(race): [] for race in races}
    for race in order:
        times[id(race)].append(race.run())
    for race in races:
        yield judged(race, times[id(race)])


def judged(race: Race, times: list[tuple[float, list[float], float]]) -> Result:
    peers = [seconds for before, _, after in times for seconds in (before, after)]
    low, high = np.percentile(peers, (10, 90))
    if high / low > SKETCHY:
        raise SystemExit(f"{race.name}: the machine is too busy to tell (baseline p90/p10 {high / low:.1f}); run again")
    middle = np.median([seconds for _, ours, _ in times for seconds in ours])
    say(f"{race.name}: ours {1e3 * middle:.0f} ms, {race.peer} {np.median(peers):.2f} s of CPU time")
    ratios = [2 * seconds / (before + after) for before, ours, after in times for seconds in ours]
    p10, ratio, p90 = np.percentile(ratios, (10, 50, 90))
    return Result(race.name, float(ratio), race.peer, float(p10), float(p90), len(ratios), race.goal)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def results(queries: int, folder: Path) -> Iterator[Result]:
    run, qrels = made(queries)
    files = folder / "run.txt", folder / "qrels.txt"
    write_run(run, files[0])
    write_qrels(qrels, files[1])
    ranked, grades = as_dict(run), {query: dict(found) for query, found in qrels.items()}
    say(f"{queries} queries with {DEPTH} hits made, {files[0].stat().st_size >> 20} MiB as a TREC file")
    dicts: dict[str, Task] = {"pytrec_eval": lambda: pytrec(ranked, grades), "ir_measures": lambda: ir(ranked, grades)}
    disk = {"pytrec_eval": pytrec_from_files(*files), "ir_measures": ir_from_files(*files)}
    ways = [
        ("from arrays", 0.01, ours_from_arrays(run, qrels), dicts, 7),
        ("joined by id", 0.05, ours_in_memory(run, qrels), dicts, 7),
        ("from TREC files", 0.2, ours_from_files(*files), disk, 3),
    ]
    yield from raced(
        [
            Race(name, peer, goal, ours, theirs[peer], calls)
            for name, goal, ours, theirs, calls in ways
            for peer in theirs
        ]
    )


def show(result: Result, options: Any) -> None:
    if options.json:
        print(json.dumps(asdict(result)), flush=True)
        return
    verdict = "met" if result.met else "NOT MET"
    spread = f"({result.p10:.4f}-{result.p90:.4f}, n={result.n})"
    print(f"{result.name}: {result.ratio:.4f} {spread} of {result.peer}; goal {result.goal}: {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the queries")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for result in results(QUERIES // 10 if options.quick else QUERIES, Path(folder)):
            show(result, options)
            met &= result.met
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
