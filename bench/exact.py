"""Exact search against faiss on one thread: CPU time of one query and of 128 at once, memory, and the answers.

A million clustered unit vectors of 768 dimensions (--quick: a tenth): 20,000 Gaussian clusters with a power-law
spectrum and a common offset. Queries are held out and noisier.

    python bench/exact.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import DIM, Command, Floats, Measurement, Race, clusters, race, say, timed, vectors_on_disk
from eyespot.indexes.exact import Exact, load, quantise

K, BATCH = 50, 128
SINGLE_TRIALS, BATCH_TRIALS, CHECKED = 41, 9, 200


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
    size = sum(codes.nbytes for codes in index.codes) / vectors.nbytes
    yield Measurement.from_mean("memory beside the vectors", size, "float32 vectors", 0.3)
    yield disagreement(index, vectors, world.draw(CHECKED, noise=0.75))

    def ours(queries: Floats) -> object:
        return index.search(queries, K)

    faiss = peers(vectors)
    single = [world.query() for _ in range(SINGLE_TRIALS + 1)]
    batches = [world.draw(BATCH, noise=0.75) for _ in range(BATCH_TRIALS + 1)]
    refined = "faiss SQ8 uniform + RefineFlat"
    batched = "faiss IndexFlatIP (BLAS from 20 queries)"
    yield from race(
        [
            (Race("one query, top 50", "faiss IndexFlatIP", ours, faiss["flat"], 0.30), single),
            (Race("one query, top 50, refined", refined, ours, faiss["refined"], 1.15), single),
            (Race("128 queries, top 50", batched, ours, faiss["flat"], 1.1), batches),
        ]
    )


if __name__ == "__main__":
    Command(__doc__, fast=True, threads=1).run(measurements)
