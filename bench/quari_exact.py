"""Are the best under adapted queries those of the formula in float64, over a million rows?

A hundred fresh queries (--quick: five) in each scenario of bench/quari.py, maps of rank 16 and 64, and under networks
trained here on noisy copies of the vectors (both presets, both ranks); the 50 and the 1,000 best. The truth is the
formula in float64, for all rows but those that the formula in float32 puts below the last of the best by a wide margin.
A ratio is the share of searches with a different answer (scores that differ by less than 1e-9 may change places), and
the goal is none.

    python bench/quari_exact.py [--quick] [--queries N] [--rank 16|64] [--only WORDS] [--json]
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Floats, Measurement, SyntheticVectors, clusters, vectors_on_disk
from bench.quari import PAPER, RELEASED, Maps, adapted
from eyespot.adapters.quari import Config, load
from eyespot.adapters.quari.config import PRESETS
from eyespot.adapters.quari.scoring import AdaptedIndex, factored_scores
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
from eyespot.kernels.codes import quantise
from eyespot.types import AdaptedQuery, NearestRows

Draw = Callable[[], AdaptedQuery]
ROWS, RANKS, TOPS = 1_000_000, (16, 64), (50, 1000)
PIECE, BATCH = 4_096, 10  # rows, views
TRAINED = 3_200  # images that a network is trained on
MARGIN = 1e-4  # of a cosine: many times what float32 loses in these worlds
SAME = 1e-9


def in_float32(views: Sequence[AdaptedQuery], vectors: Floats) -> Floats:
    """The formula in factors, in float32, (views, rows); each piece of the rows is read once for all views."""
    scores = np.empty((len(views), len(vectors)), np.float32)
    own = any(view.identity for view in views)
    sides = [np.concatenate([view[side] for view in views], axis=1) for side in ((1, 2) if own else (1,))]
    along = np.stack([view.identity * view.query + view.left @ (view.right.T @ view.query) for view in views])
    spreads = [view.right.T @ view.right for view in views]
    for start in range(0, len(vectors), PIECE):
        rows = np.ascontiguousarray(vectors[start : start + PIECE])
        above = along @ rows.T  # (views, n)
        left, *right = (np.split(rows @ side, len(views), axis=1) for side in sides)  # (n, r) for each view
        lengths = np.einsum("ij,ij->i", rows, rows) if own else 0.0
        for at, view in enumerate(views):
            squares = np.einsum("ij,ij->i", left[at] @ spreads[at], left[at])
            if view.identity:
                squares += view.identity**2 * lengths
                squares += 2 * view.identity * np.einsum("ij,ij->i", left[at], right[0][at])
            scores[at, start : start + PIECE] = above[at] / np.sqrt(squares)
    return scores


def truth(view: AdaptedQuery, near: Floats, vectors: Floats, k: int) -> dict[int, float]:
    """The rows that may be among the k best, and their scores in float64; `near` is what float32 has, (rows,)."""
    rows = np.flatnonzero(near >= np.partition(near, -k)[-k] - MARGIN)
    return dict(zip(rows.tolist(), factored_scores(view, vectors[rows]).tolist(), strict=True))


def is_right(results: NearestRows, known: dict[int, float], k: int) -> bool:
    best = np.sort(np.fromiter(known.values(), float))[::-1][:k]
    rows = results.rows[0].tolist()
    scores = np.array([known.get(row, -np.inf) for row in rows])
    return len(set(rows)) == k and bool(np.abs(scores - best).max() < SAME)


def trained(world: SyntheticVectors, sample: Floats, config: Config) -> Draw:
    """Views of fresh queries by a network that was trained for a minute: texts are noisy copies of the images."""
    from eyespot.adapters.quari.training.loop import train

    noisy = sample + 0.5 * world.draw(len(sample))
    pairs = Pairs(noisy / np.linalg.norm(noisy, axis=1, keepdims=True), sample, np.arange(len(sample)))
    settings = TrainingSettings(batch=64, accumulate=1, epochs=1, patience=0, device="cpu", keep_anyway=True)
    with tempfile.TemporaryDirectory() as out:
        train(TrainingData(pairs), config, settings, Path(out))
        adapter = load(Path(out) / "model")
    return lambda: adapter.adapt(world.draw(1, noise=0.75))[0]


def without_norms(world: SyntheticVectors, rng: np.random.Generator, rank: int) -> AdaptedQuery:
    """A map of the preset `released` with factors that are not normalised: the identity and Gaussian factors."""
    query, target = world.draw(2, noise=0.75).astype(np.float64)
    left, right = rng.standard_normal((2, len(query), rank)) / len(query) ** 0.5
    return adapted(query + target, 0.8 * left, right, 1.0)


def scenarios(world: SyntheticVectors, sample: Floats, rank: int) -> Iterator[tuple[str, Callable[[], Draw]]]:
    """Each scenario, and what gives its draw, which may take minutes of training."""
    maps = Maps(world, sample, np.random.default_rng(100 + rank), rank)
    for scenario in (*PAPER, *RELEASED):
        yield scenario, lambda scenario=scenario: partial(maps.draw, scenario)  # type: ignore[misc]
    yield "without norms", lambda: partial(without_norms, world, maps.rng, rank)
    for preset in PRESETS:
        shape = Config(sample.shape[1], rank, hidden_dim=128, num_steps=2, num_layers=2, preset=preset)
        yield f"trained, {preset}", partial(trained, world, sample[:TRAINED], shape)


def measurements(options: Namespace) -> Iterator[Measurement]:
    world, rows = clusters(), ROWS // 10 if options.quick else ROWS
    queries = options.queries or (5 if options.quick else 100)
    vectors = vectors_on_disk(world, options.folder / "vectors.npy", rows)
    sample = np.array(vectors[:: max(1, rows // 20_000)])
    index = AdaptedIndex(vectors, [quantise(vectors)], small=0)
    for rank in [options.rank] if options.rank else RANKS:
        for scenario, make in scenarios(world, sample, rank):
            if options.only in scenario:
                for k, wrong in wrong_answers(index, vectors, make(), queries).items():
                    name = f"rank {rank}, {scenario}, top {k}: other answers"
                    yield Measurement.from_mean(name, wrong, "the formula in float64", 0.0)


def wrong_answers(index: AdaptedIndex, vectors: Floats, draw: Draw, queries: int) -> dict[int, list[bool]]:
    """Whether each query's best k differ from the truth, for each k."""
    wrong: dict[int, list[bool]] = {k: [] for k in TOPS}
    for first in range(0, queries, BATCH):
        views = [draw() for _ in range(min(BATCH, queries - first))]
        for view, near in zip(views, in_float32(views, vectors), strict=True):
            known = truth(view, near, vectors, max(TOPS))
            for k in TOPS:
                wrong[k].append(not is_right(index.search([view], k), known, k))
    return wrong


if __name__ == "__main__":
    command = Command(__doc__, fast=True, quick="five queries a scenario over a tenth of the rows")
    command.add_argument("--queries", type=int, help="the number in each scenario")
    command.add_argument("--rank", type=int, choices=RANKS, help="only maps of this rank")
    command.add_argument("--only", default="", metavar="WORDS", help="the scenarios whose names contain these words")
    command.run(measurements)
