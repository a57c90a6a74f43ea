"""Exact search against numpy, simsimd and faiss on one thread: CPU time of one query and of 128 at once, and memory.

A million clustered unit vectors of 768 dimensions (--quick: a tenth): 20,000 Gaussian clusters with a power-law
spectrum and a common offset. Queries are held out and noisier. simsimd multiplies int8 codes and scores the likeliest
200 again, faiss also reads RaBitQ codes and scores the likeliest 1,000 again: neither is certain of its answer, and
stderr names what each misses. A peer that is not installed is left out.

    python bench/exact.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import DIM, Command, Floats, Measurement, Race, clusters, race, say, timed, vectors_on_disk
from eyespot.extras import needed
from eyespot.indexes.exact import Exact, load, quantise

K, BATCH = 50, 128
SINGLE_TRIALS, BATCH_TRIALS, CHECKED = 41, 9, 200
NAMED = 1000  # rows that RaBitQ's codes name, of which the best are scored again

Answer = Callable[[Floats], Any]


def numpy_scan(vectors: Floats) -> Answer:
    """The plain float32 scan: all products, and the best of them."""
    return lambda queries: best_of(vectors, queries[0], np.argpartition(vectors @ queries[0], -K)[-K:])


def best_of(vectors: Floats, query: Floats, rows: Any) -> Any:
    """The K best of some rows, by their own vectors."""
    scores = vectors[rows] @ query
    return rows[np.argsort(-scores)[:K]]


def simsimd_int8(vectors: Floats) -> Answer:
    """Int8 codes, each row with its own scale; the best four times K are scored again."""
    import simsimd

    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), 20_000):
        rows = vectors[start : start + 20_000]
        scales[start : start + 20_000] = np.abs(rows).max(axis=1) / 127
        codes[start : start + 20_000] = np.rint(rows / scales[start : start + 20_000, None])

    def search(queries: Floats) -> Any:
        (query,) = queries
        whole = np.rint(query * (127 / np.abs(query).max())).astype(np.int8)
        scores = np.asarray(simsimd.cdist(whole[None], codes, "dot"), np.float32)[0] * scales
        return best_of(vectors, query, np.argpartition(scores, -4 * K)[-4 * K :])

    return search


def rabitq(vectors: Floats) -> Answer:
    """faiss's RaBitQ codes of one bit, by fast scan; the likeliest are scored again."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexRaBitQFastScan(DIM, faiss.METRIC_INNER_PRODUCT)
    index.train(np.ascontiguousarray(vectors[:50_000]))
    for start in range(0, len(vectors), 100_000):
        index.add(np.ascontiguousarray(vectors[start : start + 100_000]))
    return lambda queries: best_of(vectors, queries[0], index.search(queries, NAMED)[1][0])


SINGLE = {  # peers of one query, numpy's first → the package, what answers, and the goal, if any
    "plain float32 scan in numpy": ("numpy", numpy_scan, 0.30),
    "simsimd int8 + refine": ("simsimd", simsimd_int8, None),
    "faiss RaBitQ fast scan + refine": ("faiss", rabitq, None),
}


def single_races(vectors: Floats, ours: Answer, queries: list[Floats]) -> Iterator[tuple[Race, list[Floats]]]:
    """One query against each peer that is installed; prints what the peer misses of the best."""
    for name, (package, build, goal) in SINGLE.items():
        if find_spec(package) is None:
            say(f"{name} is left out: {needed(name, package)}")
            continue
        find = build(vectors)
        missed = np.mean([np.isin(ours(query).rows[0], find(query), invert=True).mean() for query in queries])
        say(f"{name} misses {missed:.2%} of the best {K}")
        yield Race("one query, top 50", name, ours, find, goal), queries


def peers(vectors: Floats) -> dict[str, Callable[[Floats], Any]]:
    """faiss's flat index, and its 8-bit index that scores the best again."""
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
    owners = (bytes8, vectors)  # the refined index only points at them
    return {"flat": lambda q: flat.search(q, K), "refined": lambda q: (refined.search(q, K), owners)}


def disagreement(index: Exact, vectors: Floats, queries: Floats) -> Measurement:
    """The share of queries whose top 50 differs from that of a float64 scan by more than 1e-6."""
    results = index.search(queries, K)
    best = np.full((len(queries), K), -np.inf)
    exact = queries.astype(np.float64)
    for start in range(0, len(vectors), 20_000):
        scores = exact @ vectors[start : start + 20_000].astype(np.float64).T
        best = -np.sort(-np.concatenate([best, np.partition(scores, -K, axis=1)[:, -K:]], axis=1), axis=1)[:, :K]
    true = np.stack([vectors[rows].astype(np.float64) @ query for rows, query in zip(results.rows, exact, strict=True)])
    wrong = (np.abs(true - best) > 1e-6).any(axis=1) | (np.abs(results.scores - true) > 1e-6).any(axis=1)
    return Measurement.from_mean("answers unlike float64", wrong, "float64 scan", 0.0)


def measurements(options: Namespace) -> Iterator[Measurement]:
    world, rows = clusters(), 100_000 if options.quick else 1_000_000
    vectors = vectors_on_disk(world, options.folder / "vectors.npy", rows)
    say(f"{rows} vectors made")
    seconds, codes = timed(lambda: quantise(vectors, threads=1))
    say(f"codes made in {seconds:.1f} s of CPU time (compiling included if never done before)")
    index = load([vectors], codes=[codes], threads=1, small=0)
    size = sum(codes.nbytes for codes in index.codes if codes is not None) / vectors.nbytes
    yield Measurement.from_mean("memory beside the vectors", size, "float32 vectors", 0.3)
    yield disagreement(index, vectors, world.draw(CHECKED, noise=0.75))

    def ours(queries: Floats) -> Any:
        return index.search(queries, K)

    faiss = peers(vectors)
    single = [world.query() for _ in range(SINGLE_TRIALS + 1)]
    batches = [world.draw(BATCH, noise=0.75) for _ in range(BATCH_TRIALS + 1)]
    refined = "faiss SQ8 uniform + RefineFlat"
    batched = "faiss IndexFlatIP (BLAS from 20 queries)"
    yield from race(
        [
            *single_races(vectors, ours, single),
            (Race("one query, top 50", "faiss IndexFlatIP", ours, faiss["flat"], 0.30), single),
            (Race("one query, top 50, refined", refined, ours, faiss["refined"], 1.15), single),
            (Race("128 queries, top 50", batched, ours, faiss["flat"], 1.1), batches),
        ]
    )


if __name__ == "__main__":
    Command(__doc__, fast=True, threads=1).run(measurements)
