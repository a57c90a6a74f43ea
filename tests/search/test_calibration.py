"""Calibration: intervals that hold what they promise, estimates that are right on average, a posterior done by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bench.calibration import reliability
from eyespot.runs import read_qrels, read_run
from eyespot.search.calibration import Accuracy, Curve, RankSample, _chain, fit, next_ranks, plan
from eyespot.types import NothingFound, UsageError
from tests.examples import examples
from tests.wording import raises

LABELLED = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "inquire_rerank_hard"
ERRING = Accuracy(0.9, 0.85)


def falling(hits: int) -> np.ndarray:
    return -np.arange(hits, dtype=float)


def calibrated(labels: np.ndarray, verdicts: int, seed: int = 0, judge: Accuracy = Accuracy()) -> Curve:
    """The curve of a ranking with these labels, from a judge who errs as often as it says."""
    rng = np.random.default_rng([seed, 1])
    sample = plan(len(labels), verdicts, seed)
    yes = np.where(labels[sample.ranks - 1] == 1, judge.sensitivity, 1 - judge.specificity)
    return fit(falling(len(labels)), sample, rng.random(len(yes)) < yes, judge, seed)


def labelled() -> list[np.ndarray]:
    if not LABELLED.exists():
        pytest.skip(f"needs {LABELLED}")
    run, qrels = read_run(LABELLED / "run_given_order.txt"), read_qrels(LABELLED / "qrels.txt")
    return np.split((run.graded(qrels) > 0).astype(int), run.offsets[1:-1])


def coverage(queries: list[np.ndarray], seeds: int, judge: Accuracy) -> float:
    held = []
    for seed in range(seeds):
        for at, labels in enumerate(queries):
            count = calibrated(labels, 30, 1000 * seed + at, judge).count()
            held.append(count.low <= labels.sum() <= count.high)
    return float(np.mean(held))


@settings(max_examples=examples(50), deadline=None)
@given(hits=st.integers(1, 3000), verdicts=st.integers(1, 80), seed=st.integers(0, 9))
def test_a_plan_has_as_many_hits_as_asked_from_every_stratum(hits: int, verdicts: int, seed: int) -> None:
    sample = plan(hits, verdicts, seed)

    assert len(set(sample.ranks.tolist())) == len(sample.ranks) == min(hits, verdicts)
    assert sample.taken.min() >= 1 and sample.hits == hits


def test_every_hit_is_drawn_as_often_as_its_inclusion_probability_says() -> None:
    drawn = np.zeros(10)
    for seed in range(800):
        drawn[plan(10, 4, seed).ranks - 1] += 1

    sample = plan(10, 4)
    assert sample.edges.tolist() == [1, 4, 11] and sample.taken.tolist() == [2, 2]
    assert drawn / 800 == pytest.approx([2 / 3] * 3 + [2 / 7] * 7, abs=0.06)


def test_a_corrected_verdict_of_an_erring_judge_is_right_on_average() -> None:
    yes, no = Accuracy(0.9, 0.8).corrected(np.array([1.0, 0.0]))

    assert (0.9 * yes + 0.1 * no, 0.2 * yes + 0.8 * no) == pytest.approx((1, 0))


def test_the_posterior_is_that_of_all_paths_summed_up() -> None:
    curve = fit(falling(2), RankSample.of(2, [1]), [1])

    share = _chain.grid(2).share
    weights, paths = [], list(product(range(len(share)), repeat=3))  # ranks 1 and 2 are the cells 0 and 2
    a, b, c = np.array(paths).T
    for slope, steps in zip(_chain.SLOPES, _chain.grid(2).steps, strict=True):
        weights.append(slope.belief * share[a] * steps[a, b] * steps[b, c])
    weight = np.sum(weights, axis=0) / np.sum(weights)
    assert curve.share == pytest.approx([weight @ share[a], weight @ share[c]], abs=0.02)
    assert curve.probability[0] == 1


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_counts_lie_in_their_intervals_and_grow_with_the_ranking(data: st.DataObject) -> None:
    hits = data.draw(st.integers(1, 300))
    sample = plan(hits, data.draw(st.integers(1, 20)), data.draw(st.integers(0, 5)))
    verdicts = data.draw(st.lists(st.floats(0, 1), min_size=len(sample.ranks), max_size=len(sample.ranks)))
    judge = data.draw(st.sampled_from([Accuracy(), ERRING, Accuracy(0.9, 0.85, 20, 20)]))

    curve = fit(falling(hits), sample, verdicts, judge)

    counts = [curve.count(k) for k in {1, (hits + 1) // 2, hits}]
    assert all(0 <= count.low <= count.median <= count.high for count in counts)
    assert all(count.low - 1 <= count.expected <= count.high + 1 for count in counts)
    assert curve.count().high <= hits and curve.count().expected == pytest.approx(curve.probability.sum())


def test_a_hit_without_an_answer_is_as_if_never_asked_and_a_verdict_of_one_half_says_nothing() -> None:
    never = fit(falling(50), RankSample.of(50, [1, 40]), [1, 0])
    silent, half = (fit(falling(50), RankSample.of(50, [1, 9, 40]), [1, verdict, 0]) for verdict in (np.nan, 0.5))

    assert silent.count(20) == never.count(20)
    assert half.share == pytest.approx(never.share, abs=0.03)


def test_thousands_of_verdicts_are_not_too_many() -> None:
    ranks = np.arange(17_783, 20_001)  # one cell: its verdicts together have a probability of 2^-2218

    assert fit(falling(20_000), RankSample.of(20_000, ranks), ranks % 2).share[-1] == pytest.approx(0.5, abs=0.05)


def test_the_errors_of_a_judge_are_not_counted_as_pictures() -> None:
    barren = np.zeros(100, int)
    judged = calibrated(barren, 60, seed=3, judge=ERRING)
    at_their_word = fit(falling(100), judged.sample, judged.verdicts)

    assert judged.verdicts.sum() >= 5 and at_their_word.count().low >= 5
    assert judged.count().low == 0


def test_an_accuracy_measured_on_few_pictures_says_less() -> None:
    labels = (np.arange(400) % 4 == 0).astype(int)
    widths = []
    for judge in (Accuracy(0.9, 0.9), Accuracy(0.9, 0.9, 10, 10)):
        count = calibrated(labels, 400, judge=judge).count()
        widths.append(count.high - count.low)

    assert widths[1] > 1.2 * widths[0]


def test_the_cut_is_the_last_rank_with_the_precision_asked_for() -> None:
    curve = calibrated((np.arange(1000) < 40).astype(int), 60)
    cut = curve.likely(0.6)

    precision = np.cumsum(curve.probability) / np.arange(1, 1001)
    assert precision[cut.hits - 1] >= 0.6 > precision[cut.hits :].max()
    assert cut.low <= 40 / cut.hits <= cut.high and cut.score == 1 - cut.hits


def test_where_nothing_is_relevant_nothing_is_likely() -> None:
    with raises(NothingFound):
        calibrated(np.zeros(100, int), 50).likely(0.9)


def test_next_ranks_are_new_and_for_the_first_hits_they_stay_near_them() -> None:
    few = calibrated((np.arange(40) < 5).astype(int), 10)
    many = calibrated((np.arange(10_000) < 50).astype(int), 40)

    assert sorted([*few.sample.ranks, *next_ranks(few, 100)]) == list(range(1, 41))
    assert next_ranks(many, 5, k=100).max() <= 100 < next_ranks(many, 5).max()


def test_verdicts_where_the_curve_is_uncertain_narrow_the_count() -> None:
    labels = (np.arange(10_000) < 50).astype(int)
    curve = calibrated(labels, 30)
    ranks = next_ranks(curve, 60)
    narrowed = curve.joined(ranks, labels[ranks - 1]).count()

    assert narrowed.high - narrowed.low < 0.6 * (curve.count().high - curve.count().low)
    assert narrowed.low <= 50 <= narrowed.high


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("seeds", "most"), [(1, 1), pytest.param(100, 0.98, marks=pytest.mark.slow)])
@pytest.mark.parametrize("judge", [Accuracy(), ERRING], ids=["right", "erring"])
def test_intervals_on_labelled_queries_hold_the_truth_within_three_points_of_nominal(
    judge: Accuracy, seeds: int, most: float
) -> None:
    assert 0.92 <= coverage(labelled(), seeds, judge) <= most


def test_relevant_pictures_far_down_are_not_ruled_out() -> None:
    labels = np.zeros(10_000, int)
    labels[:20] = labels[4000:10_000:200] = 1  # 30 more, where few of the 30 verdicts go

    assert coverage([labels], 12, Accuracy()) >= 0.9


def test_a_reliability_diagram_by_hand() -> None:
    table = reliability(np.array([0.1, 0.15, 0.8, 1.0]), np.array([0, 1, 1, 1]), bins=2)

    assert (table.low.tolist(), table.hits.tolist()) == ([0, 0.5], [2, 2])
    assert (table.predicted.tolist(), table.observed.tolist()) == ([0.125, 0.9], [0.5, 1])
    assert table.error == pytest.approx((0.375 + 0.1) / 2)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: plan(0, 5),
        lambda: plan(5, 0),
        lambda: RankSample.of(5, [6]),
        lambda: RankSample.of(5, [2, 2]),
        lambda: fit([1, 2], RankSample.of(2, [1]), [1]),
        lambda: fit([1, np.nan], RankSample.of(2, [1]), [1]),
        lambda: fit([2, 1, 0], RankSample.of(2, [1]), [1]),
        lambda: fit([2, 1], RankSample.of(2, [1]), [1, 0]),
        lambda: fit([2, 1], RankSample.of(2, [1]), [1.5]),
        lambda: fit([2, 1], RankSample.of(2, [1]), [np.nan]),
        lambda: fit([2, 1], RankSample.of(2, [1]), [1]).count(3),
        lambda: fit([2, 1], RankSample.of(2, [1]), [1]).count(0),
        lambda: fit([2, 1], RankSample.of(2, [1]), [1]).likely(0),
        lambda: next_ranks(fit([2, 1], RankSample.of(2, [1]), [1]), -1),
        lambda: Accuracy(0.5, 0.5),
        lambda: Accuracy(1.2, 0.9),
        lambda: Accuracy(0.9, 0.9, relevant=5),
        lambda: Accuracy(0.9, 0.9, 0, 5),
    ],
    ids=range(18),
)
def test_what_cannot_be_is_said_in_a_sentence(attempt) -> None:
    with raises(UsageError):
        attempt()
