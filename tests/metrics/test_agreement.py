"""The same numbers as ir-measures (pytrec_eval) and scikit-learn wherever the definitions are the same."""

from __future__ import annotations

import random

import pytest

from eyespot.metrics import evaluate, parse, preset
from eyespot.types import Qrels, RankedImage, Run
from tests.lazy_import import lazy_import, requires

ir_measures = lazy_import("ir_measures")
pytestmark = requires("ir_measures", "sklearn")

SHARED = [
    *("AP", "AP@5", "nDCG", "nDCG@5", "nDCG@20", "RR", "R@5", "P@5", "P@50", "Rprec", "Success@3", "P(rel=2)@5"),
    *("AP(rel=2)@5", "R(rel=2)@5", "RR@3", "Judged@5"),
]


def world(seed: int, ties: bool) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """20 queries that rank up to 30 of 60 images, of which some are judged; ids as text, some scores equal."""
    rng = random.Random(seed)
    images = [f"d{number}" for number in range(60)]
    run = {
        f"q{q}": {i: float(rng.randint(0, 6) if ties else rng.random()) for i in rng.sample(images, rng.randint(1, 30))}
        for q in range(20)
    }
    qrels = {
        f"q{q}": {i: rng.choice((0, 0, 0, 1, 2, 3)) for i in rng.sample(images, rng.randint(5, 40))} for q in range(20)
    }
    return run, {query: {**found, "always": 1} for query, found in qrels.items()}


def ranked(scores: dict[str, dict[str, float]]) -> Run:
    return Run(
        {
            query: [RankedImage(*hit) for hit in sorted(found.items(), key=lambda hit: -hit[1])]
            for query, found in scores.items()
        }
    )


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_ir_measures(seed: int, ties: bool) -> None:
    run, qrels = world(seed, ties)
    shared = [
        name for name in SHARED if not (ties and name.startswith(("Judged", "RR@")))
    ]  # it sorts ties otherwise there
    theirs = {
        (str(found.measure), found.query_id): found.value
        for found in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in shared], qrels, run)
    }

    scores = evaluate(ranked(run), Qrels(qrels), shared, preset("trec").rules)

    ours = {
        (label, query): value
        for label in scores.values
        for query, value in zip(scores.queries, scores.values[label].tolist(), strict=True)
    }
    assert len(ours) == 20 * len(shared)
    assert ours == pytest.approx(
        {(str(parse(name)), query): value for (name, query), value in theirs.items()}, abs=1e-9
    )
