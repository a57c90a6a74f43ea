"""Are the best under adapted queries those of the formula in float64, over a million rows?

A hundred fresh queries (--quick: five) in each scenario of bench/quari.py, maps of rank 16 and 64, and under networks
trained here on noisy copies of the vectors (both presets, both ranks); the 50 and the 1,000 best. The truth is the
formula in float64 for every row that the formula in float32, over all rows, does not put a wide margin below the last
of the best. `ratio` is the share of searches whose answer is another (scores that differ by less than 1e-9 may change
places), and the goal is none. Exit code 4 if it is missed.

    python bench/quari_exact.py [--quick] [--queries N] [--rank 16|64] [--only WORDS] [--json]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.exact import Floats, Result, World, say, show
from bench.quari import PAPER, RELEASED, Maps, adapted
from eyespot.adapters.quari import Config, load
from eyespot.adapters.quari.config import PRESETS
from eyespot.adapters.quari.scoring import AdaptedIndex, factored_scores
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
from eyespot.kernels.codes import quantise
from eyespot.types import AdaptedQuery, NearestRows

Draw = Callable[[], AdaptedQuery]
ROWS, RANKS, TOPS = 1_000_000, (16, 64), (50, 1000)
PIECE, TOGETHER = 4_096, 10  # rows, views
TRAINED = 3_200  # images that a network is trained on
MARGIN = 1e-4  # of a cosine: many times what float32 loses in these worlds
SAME = 1e-9


def in_float32(views: Sequence[AdaptedQuery], vectors: Floats) -> Floats:
    """The formula in factors, in float32, (views, rows); every piece of the rows is read once for all views."""
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


def is_right(found: NearestRows, known: dict[int, float], k: int) -> bool:
    best = np.sort(np.fromiter(known.values(), float))[::-1][:k]
    told = [known.get(row, -np.inf) for row in found.rows[0].tolist()]
    return len(set(found.rows[0].tolist())) == k and bool(np.abs(np.array(told) - best).max() < SAME)


def trained(world: World, sample: Floats, config: Config) -> Draw:
    """Views of fresh queries by a network that was trained for a minute: texts are noisy copies of the images."""
    from eyespot.adapters.quari.training.loop import train

    noisy = sample + 0.5 * world.draw(len(sample))
    pairs = Pairs(noisy / np.linalg.norm(noisy, axis=1, keepdims=True), sample, np.arange(len(sample)))
    settings = TrainingSettings(batch=64, accumulate=1, epochs=1, patience=0, device="cpu")
    with tempfile.TemporaryDirectory() as out:
        adapter = load(train(TrainingData(pairs), config, settings, Path(out)).model)
    return lambda: adapter.adapt(world.draw(1, noise=0.75))[0]


def without_norms(world: World, rng: np.random.Generator, rank: int) -> AdaptedQuery:
    """A map of the preset `released` whose factors are taken as they are: the identity and Gaussian factors."""
    query, target = world.draw(2, noise=0.75).astype(np.float64)
    left, right = rng.standard_normal((2, len(query), rank)) / len(query) ** 0.5
    return adapted(query + target, 0.8 * left, right, 1.0)


def drawn(world: World, sample: Floats, rank: int) -> Iterator[tuple[str, Callable[[], Draw]]]:
    """Every scenario, and what makes, perhaps in minutes, what draws the views of its queries."""
    maps = Maps(world, sample, np.random.default_rng(100 + rank), rank)
    for scenario in (*PAPER, *RELEASED):
        yield scenario, lambda scenario=scenario: partial(maps.draw, scenario)  # type: ignore[misc]
    yield "without norms", lambda: partial(without_norms, world, maps.rng, rank)
    for preset in PRESETS:
        shape = Config(sample.shape[1], rank, hidden_dim=128, num_steps=2, num_layers=2, preset=preset)
        yield f"trained, {preset}", partial(trained, world, sample[:TRAINED], shape)


def results(rows: int, queries: int, folder: Path, ranks: Sequence[int], only: str) -> Iterator[Result]:
    world = World()
    vectors = world.fill(folder / "vectors.npy", rows)
    sample = np.array(vectors[:: max(1, rows // 20_000)])
    index = AdaptedIndex(vectors, [quantise(vectors)], small=0)
    for rank in ranks:
        for scenario, made in drawn(world, sample, rank):
            if only not in scenario:
                continue
            draw = made()
            wrong = {k: 0 for k in TOPS}
            for first in range(0, queries, TOGETHER):
                views = [draw() for _ in range(min(TOGETHER, queries - first))]
                for view, near in zip(views, in_float32(views, vectors), strict=True):
                    known = truth(view, near, vectors, max(TOPS))
                    for k in TOPS:
                        wrong[k] += not is_right(index.search([view], k), known, k)
            for k in TOPS:
                share = wrong[k] / queries
                name = f"rank {rank}, {scenario}, top {k}: other answers"
                yield Result(name, share, "the formula in float64", share, share, queries, 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="five queries a scenario over a tenth of the rows")
    parser.add_argument("--queries", type=int, help="so many in each scenario")
    parser.add_argument("--rank", type=int, choices=RANKS, help="maps of this rank alone")
    parser.add_argument("--only", default="", metavar="WORDS", help="the scenarios whose names hold these words")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    options = parser.parse_args()
    met = True
    say(f"on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        rows, queries = (ROWS // 10, 5) if options.quick else (ROWS, 100)
        for told in results(
            rows, options.queries or queries, Path(folder), [options.rank] if options.rank else RANKS, options.only
        ):
            show(told, options)
            met &= told.met
    return 0 if met else 4


if __name__ == "__main__":
    sys.exit(main())
