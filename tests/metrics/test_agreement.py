"""The same numbers as ir-measures (pytrec_eval) and scikit-learn wherever the definitions are the same."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.metrics import Aligned, evaluate, parse, preset
from eyespot.types import Qrels, RankedImage, Run
from tests.lazy_import import lazy_import, requires
from tests.worlds.rankings import graded

ir_measures = lazy_import("ir_measures")
sklearn_metrics = lazy_import("sklearn.metrics")
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


@given(graded(ties=True), st.integers(1, 12))
def test_scikit_learn_s_average_precision_is_ties_average_of_what_was_found(rankings: Aligned, k: int) -> None:
    (hits,) = rankings.lengths
    first = rankings.where(np.arange(hits) < k)
    relevant = first.grades >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no positives: it gives 0 and warns
        theirs = sklearn_metrics.average_precision_score(relevant, first.scores)

    assert parse(f"AP@{k}", "retrieved", "average")(rankings)[0] == pytest.approx(float(theirs))


@given(graded(top=3, ties=True), st.integers(1, 12))
def test_scikit_learn_s_ndcg_where_everything_relevant_was_found(rankings: Aligned, k: int) -> None:
    gains = np.maximum(rankings.grades, 0)
    whole = Aligned(
        ["q"], rankings.offsets, gains, rankings.scores, np.array([0, (gains > 0).sum()]), -np.sort(-gains[gains > 0])
    )
    if len(gains) < 2:
        return
    full = sklearn_metrics.ndcg_score([gains], [rankings.scores])

    assert parse("nDCG", ties="average")(whole)[0] == pytest.approx(float(full))
    ideal = np.sort(gains)[::-1][: min(k, len(gains))]
    if len(set(rankings.scores.tolist())) == len(gains) and ideal.any():
        cut = sklearn_metrics.ndcg_score([gains], [rankings.scores], k=k)
        assert parse(f"nDCG@{k}", ties="average")(whole)[0] == pytest.approx(float(cut))
