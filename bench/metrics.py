"""Four measures of 10,000 queries with 1,000 hits each, against pytrec_eval and ir_measures.

Three times: from arrays of grades and scores against the peers' dicts; from a Run and Qrels, whose images are joined by
id as in the peers; and from TREC files, end to end. A hundred thousand images, 10 to 190 judged for each query, a
quarter of them relevant. CPU time on one thread; the means are compared as well.

    python bench/metrics.py [--quick] [--json]
"""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, Race, race, say
from eyespot.metrics import Aligned, aligned, evaluate
from eyespot.runs import read_qrels, read_run, write_qrels, write_run
from eyespot.types import IdColumn, Qrels, Run

QUERIES, DEPTH, IMAGES = 10_000, 1000, 100_000
MEASURES = ("AP", "nDCG@50", "RR", "R@100")
TREC = {"AP": "map", "nDCG@50": "ndcg_cut_50", "RR": "recip_rank", "R@100": "recall_100"}
PYTREC = {"map", "ndcg_cut.50", "recip_rank", "recall.100"}
TRIALS = 3  # rounds of the peer before and after several calls of ours, which take a hundredth

Means = dict[str, float]
Task = Callable[[int], Means]  # the number of the trial does not matter


# -- the data -----------------------------------------------------------------------------------------------------


def synthetic(queries: int) -> tuple[Run, Qrels]:
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
    return lambda _: evaluate(Aligned(known.queries, *arrays), None, MEASURES).means


def ours_in_memory(run: Run, qrels: Qrels) -> Task:
    return lambda _: evaluate(run, qrels, MEASURES).means


def ours_from_files(run: Path, qrels: Path) -> Task:
    return lambda _: evaluate(read_run(run, "trec"), read_qrels(qrels, "trec"), MEASURES).means


def pytrec(run: Any, qrels: Any) -> Means:
    import pytrec_eval

    rows = pytrec_eval.RelevanceEvaluator(qrels, PYTREC).evaluate(run)
    return {name: float(np.mean([row[TREC[name]] for row in rows.values()])) for name in MEASURES}


def ir(run: Any, qrels: Any) -> Means:
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in MEASURES]
    return {str(name): float(mean) for name, mean in ir_measures.calc_aggregate(measures, qrels, run).items()}


def pytrec_from_files(run: Path, qrels: Path) -> Task:
    import pytrec_eval

    def task(_: int) -> Means:
        with run.open() as ranked, qrels.open() as judged:
            return pytrec(pytrec_eval.parse_run(ranked), pytrec_eval.parse_qrel(judged))

    return task


def ir_from_files(run: Path, qrels: Path) -> Task:
    import ir_measures

    reading: Any = ir_measures  # its readers have no types
    return lambda _: ir(reading.read_trec_run(str(run)), reading.read_trec_qrels(str(qrels)))


# -- what is measured ---------------------------------------------------------------------------------------------


def same(means: Means, expected: Means) -> bool:
    return all(abs(means[name] - expected[name]) <= 1e-9 for name in MEASURES)


def races(run: Run, qrels: Qrels, folder: Path) -> Iterator[Race]:
    files = folder / "run.txt", folder / "qrels.txt"
    write_run(run, files[0])
    write_qrels(qrels, files[1])
    say(f"{len(run)} queries with {DEPTH} hits made, {files[0].stat().st_size >> 20} MiB as a TREC file")
    ranked, grades = as_dict(run), {query: dict(images) for query, images in qrels.items()}
    dicts: dict[str, Task] = {
        "pytrec_eval": lambda _: pytrec(ranked, grades),
        "ir_measures": lambda _: ir(ranked, grades),
    }
    disk = {"pytrec_eval": pytrec_from_files(*files), "ir_measures": ir_from_files(*files)}
    for name, goal, ours, theirs, calls in (
        ("from arrays", 0.01, ours_from_arrays(run, qrels), dicts, 7),
        ("joined by id", 0.05, ours_in_memory(run, qrels), dicts, 7),
        ("from TREC files", 0.2, ours_from_files(*files), disk, 3),
    ):
        for peer, task in theirs.items():
            yield Race(name, peer, ours, task, goal, calls=calls, before_each=gc.collect, same=same)


def measurements(options: Namespace) -> Iterator[Measurement]:
    run, qrels = synthetic(QUERIES // 10 if options.quick else QUERIES)
    return race([(each, range(TRIALS + 1)) for each in races(run, qrels, options.folder)])


if __name__ == "__main__":
    Command(__doc__, fast=True, threads=1, quick="a tenth of the queries").run(measurements)
