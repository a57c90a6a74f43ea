"""Comparing runs: differences, tests and corrections that can be checked by hand or against another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.metrics import (
    PRESETS,
    Aligned,
    Comparison,
    Resampling,
    Rules,
    Scores,
    aligned,
    compare,
    corrected,
    evaluate,
    floor,
    parse,
    preset,
    sign_flips,
    simulated_floor,
)
from eyespot.types import Qrels, Run, UsageError
from tests.examples import examples
from tests.wording import check_wording, raises
from tests.worlds.runs import ranking

FEW = Resampling(samples=200)


def scores(values: list[float], queries: list[str] | None = None, measure: str = "RR") -> Scores:
    names = queries or [f"q{row}" for row in range(len(values))]
    return Scores(names, {measure: np.array(values, float)}, {measure: parse(measure)}, Rules())


def two(before: list[float], after: list[float], how: Resampling = FEW) -> Comparison:
    return compare({"a": scores(before), "b": scores(after)}, how)


def test_means_difference_wins_and_effect_by_hand() -> None:
    pair = two([0.5, 0.25, 1, 0, 0.1 + 0.2], [1, 0.5, 0.75, 0, 0.3]).of("b", "RR")  # the last differs by rounding

    assert pair.means == pytest.approx((0.41, 0.51)) and pair.difference == pytest.approx(0.1)
    assert (pair.wins, pair.losses, pair.ties) == (2, 1, 2)
    apart = [0.4, 0.15, 0.35, 0.1, 0.1]  # from the mean difference of 0.1
    assert pair.effect == pytest.approx(0.1 / np.sqrt(np.square(apart).sum() / 4))
    assert np.isnan(two([0, 0], [0.5, 0.5]).of("b", "RR").effect)  # without spread
    assert np.isnan(two([0], [0.5]).of("b", "RR").effect)
    assert two([0.5, 0.2], [0.5, 0.2]).of("b", "RR").effect == 0


def test_the_queries_that_moved_most_come_first_and_equals_as_judged() -> None:
    pair = two([0.5, 0, 1, 0, 1], [1, 0.5, 0, 0.75, 1]).of("b", "RR")

    assert [(move.query, move.difference) for move in pair.up(2)] == [("q3", 0.75), ("q0", 0.5)]
    assert pair.down(2) == [("q2", 1, 0, -1)]


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_few_differences_are_tested_by_every_sign(differences: list[int]) -> None:
    """With whole numbers, so that the brute force has no rounding of its own."""
    sums = [sum(map(np.multiply, differences, signs)) for signs in product((1, -1), repeat=len(differences))]
    expected = np.mean([abs(one) >= abs(sum(differences)) for one in sums])

    (found,) = sign_flips(np.array(differences)[:, None] / 7)

    assert found == (pytest.approx(expected), True)


def test_each_column_is_tested_as_if_alone_and_no_p_is_zero() -> None:
    both = np.random.default_rng(2).normal(0.2, 1, (40, 2))

    assert sign_flips(both) == [*sign_flips(both[:, :1]), *sign_flips(both[:, 1:])]
    assert sign_flips(np.ones((20, 1))) == [(2 / 2**20, True)]  # twenty wins have two signs of a million
    assert sign_flips(np.ones((200, 1)), Resampling(samples=99)) == [(1 / 100, False)]


def test_interval_and_p_agree_with_their_normal_limits() -> None:
    """300 differences with mean 0.1 and deviation 1: two thirds of the mean's own deviation apart from 0."""
    drawn = np.random.default_rng(0).normal(0, 1, 300)
    differences = 0.1 + (drawn - drawn.mean()) / drawn.std()
    pair = two([0.0] * 300, differences.tolist(), Resampling(samples=10_000)).of("b", "RR")

    error = 1 / np.sqrt(300)
    assert pair.interval == pytest.approx((0.1 - 1.96 * error, 0.1 + 1.96 * error), abs=0.005)
    assert pair.flips.p == pytest.approx(0.0833, abs=0.015)  # of z = 0.1 √300 = 1.732, two-sided


def test_corrections_by_hand() -> None:
    ps = [0.01, 0.04, 0.03, 0.5]

    assert corrected(ps, "holm") == pytest.approx([0.04, 0.09, 0.09, 0.5])  # 4 · 0.01, then 3 · 0.03 holds 2 · 0.04
    assert corrected(ps, "none") == ps


def test_every_run_and_measure_counts_as_a_test() -> None:
    values = {"RR": np.arange(1, 9) / 8, "Hit@1": np.ones(8)}
    nothing = {label: np.zeros(8) for label in values}
    made = {
        name: Scores(list("abcdefgh"), each, {label: parse(label) for label in each}, Rules())
        for name, each in {"base": nothing, "one": values, "two": values}.items()
    }

    found = compare(made, FEW)

    assert [(pair.run, pair.measure) for pair in found.pairs] == [(r, m) for r in ("one", "two") for m in values]
    assert {(pair.flips.p, pair.corrected_p) for pair in found.pairs} == {(2 / 2**8, 4 * 2 / 2**8)}


QRELS = Qrels({"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}})
WHOLE, PART = Run.from_orders({query: ["a"] for query in "pqr"}), Run.from_orders({"p": ["b", "a"], "r": ["a"]})


def test_a_query_that_the_rules_skip_is_left_out_on_both_sides() -> None:
    rules = Rules(missing="skip")
    found = compare({n: evaluate(run, QRELS, ["RR"], rules) for n, run in (("whole", WHOLE), ("part", PART))}, FEW)

    assert [(move.query, move.difference) for move in found.of("part", "RR").moves()] == [("p", -0.5), ("r", 0)]


def test_queries_are_paired_by_name_in_whatever_order() -> None:
    found = compare({"a": scores([0.1, 0.9], ["x", "y"]), "b": scores([0.8, 0.1], ["y", "x"])}, FEW)

    assert [(move.query, round(move.difference, 9)) for move in found.of("b", "RR").moves()] == [("x", 0), ("y", -0.1)]


def test_too_few_queries_to_show_anything_are_noted() -> None:
    (note,) = two([0] * 5, [1] * 5).notes
    assert "0.0625" in note and two([0] * 6, [1] * 6).notes == []


ONE = scores([1], ["q0"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: compare({"a": ONE}),
        lambda: compare({"a": ONE, "b": scores([1], ["z"])}),
        lambda: compare({"a": ONE, "b": scores([1], ["q0"], "Hit@1")}),
        lambda: compare({"a": ONE, "b": ONE}, FEW, "sidak"),
        lambda: two([1], [1]).of("c", "RR"),
        lambda: Resampling(0, 0),
        lambda: Resampling(1, -1),
    ],
)
def test_what_cannot_be_compared_is_refused(ask: Callable[[], object]) -> None:
    with raises(UsageError):
        ask()


# -- from a run and its qrels to scores ---------------------------------------------------------------------------


RUN = Run.from_orders({"b": ["x", "y"], "a": ["z", "x", "w"], "other": ["x"]})
EVALUATING_QRELS = Qrels({"a": {"x": 2, "w": 0, "v": 1}, "gone": {"x": 1}, "b": {"y": 0}})


def test_rows_are_the_judged_queries_in_the_order_of_the_qrels() -> None:
    found = aligned(RUN, EVALUATING_QRELS)

    assert (list(found.queries), found.offsets.tolist()) == (["a", "b"], [0, 3, 5])
    assert found.grades.tolist() == [-1, 2, 0, -1, 0]
    assert found.scores.tolist() == [-1, -2, -3, -1, -2]
    assert (found.ideal_offsets.tolist(), found.ideal.tolist()) == ([0, 2, 2], [2, 1])
    assert (found.missing, found.unjudged) == (["gone"], ["other"])
    assert found.take([1]).grades.tolist() == [-1, 0] and list(found.take([False, True]).queries) == ["b"]
    assert found.judged_only().grades.tolist() == [2, 0, 0]


IMAGES = [f"i{number}" for number in range(150)]  # more than share one word of marks
ORDERS = st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from(IMAGES), unique=True, max_size=40))
GRADES = st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from(IMAGES), st.integers(-2, 3)))


@given(ORDERS, GRADES, GRADES)
def test_grades_are_those_of_the_dictionaries(
    orders: dict[str, list[str]], grades: dict[str, dict[str, int]], removed: dict[str, dict[str, int]]
) -> None:
    found = aligned(Run.from_orders(orders), Qrels(grades), Qrels(removed))

    for row, query in enumerate(found.queries):
        rest = [image for image in orders[query] if image not in removed.get(query, {})]
        span = slice(found.offsets[row], found.offsets[row + 1])
        assert found.grades[span].tolist() == [max(grades[query].get(image, -1), -1) for image in rest]
        best = sorted((grade for grade in grades[query].values() if grade > 0), reverse=True)
        assert found.ideal[found.ideal_offsets[row] : found.ideal_offsets[row + 1]].tolist() == best
    assert set(found.queries) == set(orders) & set(grades)


def test_missing_and_barren_queries_score_zero_or_are_left_out() -> None:
    scores = evaluate(RUN, EVALUATING_QRELS, ["RR"])
    strict = evaluate(RUN, EVALUATING_QRELS, ["RR"], Rules(missing="skip", without_relevant="skip"))

    assert dict(zip(scores.queries, scores.values["RR"], strict=True)) == {"a": 0.5, "gone": 0, "b": 0}
    assert (scores.missing, scores.unjudged, scores.without_relevant) == (["gone"], ["other"], ["b"])
    assert (strict.queries, strict.means) == (["a"], {"RR": 0.5})
    assert [note.split()[0] for note in scores.notes] == ["1", "1", "1", "an"]
    graded = evaluate(RUN, EVALUATING_QRELS, ["P(rel=9)@1", "R(rel=9)@5", "RR"])
    assert [note for note in graded.notes if "rel is 9" in note] == [
        "3 of 3 judged queries have no image of grade 9; they score 0 where rel is 9"
    ]
    assert evaluate(Run({"a": RUN["a"], "gone": []}), EVALUATING_QRELS, ["RR"]).missing == [
        "gone",
        "b",
    ]  # in whatever format


def test_one_query_has_no_interval() -> None:
    """What varies from query to query cannot be read from one of them: no interval of width zero stands beside it."""
    one = evaluate(Run({"q": [("a", 2.0), ("b", 1.0)]}), Qrels({"q": {"b": 1}}), ["RR"])

    assert one.mean("RR") == 0.5 and all(np.isnan(one.interval("RR"))) and one.notes == ["one query has no interval"]
    assert all(np.isnan(two([0.5], [0.75]).of("b", "RR").interval))


@pytest.mark.parametrize("first", [True, False])
def test_a_constant_scorer_is_told_from_a_perfect_one(first: bool) -> None:
    """Ten equal scores, of which the relevant one stands first or last in the file."""
    order = [f"i{at}" for at in range(10)][:: 1 if first else -1]
    scores = evaluate(Run({"q": [(name, 0.5) for name in order]}), Qrels({"q": {"i0": 1}}), ["AP@50"])

    assert scores.mean("AP@50") == pytest.approx(1.0 if first else 0.1)
    assert "whose order leaves AP@50 between 0.1000 and 1.0000" in scores.notes[-1]
    assert scores.ranges == {"AP@50": (pytest.approx(0.1), 1.0)}


def test_a_query_that_finds_itself_is_seen_and_left_out() -> None:
    run = Run.from_orders({"a": ["a", "b"], "b": ["a", "b"], "c": ["b", "a"], "d": ["d"]})

    found = run.self_hits()
    left = run.without(found.values())

    assert found == {"a": 0, "b": 3, "d": 6}
    assert {query: "".join(hit.image for hit in left[query]) for query in left} == {
        "a": "b",
        "b": "a",
        "c": "ba",
        "d": "",
    }


def test_a_cut_through_equal_scores_and_ids_that_do_not_match_are_told() -> None:
    run = Run({"q": [("a", 2.0), ("b", 1.0), ("c", 1.0)], "p": [("a", 3.0), ("b", 2.0), ("c", 1.0)]})

    *_, note = evaluate(run, Qrels({"q": {"b": 1}, "p": {"b": 1}}), ["P@1", "P@2"]).notes

    assert "whose order leaves P@2 between 0.2500 and 0.5000" in note
    check_wording(evaluate(Run.from_orders({"q": ["x.jpg"]}), Qrels({"q": {"x": 1}}), ["RR"]).notes[0])


def test_two_measures_of_one_name_are_spelled_out_and_the_same_one_stands_once() -> None:
    scores = evaluate(RUN, EVALUATING_QRELS, ["AP@5", "AP(norm='min-k')@5", "AP@5", "RR"])

    assert list(scores.values) == ["AP@5", "AP(norm='min-k')@5", "RR"]
    assert scores.measures["AP(norm='min-k')@5"].definition == {
        "measure": "AP",
        "cutoff": 5,
        "norm": "min-k",
        "ties": "rank",
        "rel": 1,
        "unjudged": "not relevant",
    }


def test_json_has_means_definitions_and_on_demand_queries() -> None:
    scores = evaluate(RUN, EVALUATING_QRELS, ["AP@50", "nDCG@10", "Hit@1"])

    report = json.loads(json.dumps(scores.as_json(per_query=True)))

    assert list(report["measures"]) == ["AP@50", "nDCG@10", "Hit@1"]
    assert report["measures"]["AP@50"]["mean"] == pytest.approx(0.25 / 3)
    assert report["measures"]["AP@50"]["definition"]["norm"] == "all"
    assert report["queries"]["a"]["AP@50"] == pytest.approx(0.25)
    assert "queries" not in scores.as_json()
    assert scores.take([0]).as_json()["measures"]["AP@50"]["mean"] == pytest.approx(0.25)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(0, 2))
def test_closed_forms_are_means_over_all_orders(grades: list[int], outside: int) -> None:
    """Every order of the pool, with relevant images outside the pool, too."""
    known = ranking(grades, sum(grade > 0 for grade in grades) + outside)
    orders = sorted(set(permutations(grades)))
    for spelling in [
        *("AP", "AP@4", "AP(norm='min-k')@4", "nDCG", "nDCG@4", "nDCG(dcg='exp-log2')@4", "RR", "RR@3", "R@4", "Hit@4"),
        *("Success@4", "P@4", "P", "Rprec", "mAP@R", "Oracle@4", "R(rel=2)@4", "AP(rel=2)@4"),
    ]:
        measure = parse(spelling)
        every = [measure(replace(known, grades=np.array(order))) for order in orders]
        found = floor(measure, known)
        assert found.mean == pytest.approx(float(np.mean(every)), abs=1e-12) and found.exact and not found.error, (
            spelling
        )


@pytest.mark.parametrize("spelling", ["AP@4", "nDCG", "RR@3", "Oracle@4"])
def test_simulation_agrees_with_the_closed_form_in_a_larger_pool(spelling: str) -> None:
    rankings = ranking([1, 0, 2, 0, 1], relevant=7).take([0, 0])
    measure = parse(spelling)

    exact, drawn = floor(measure, rankings, pool=[40, 60]), simulated_floor(measure, rankings, [40, 60], rounds=3000)

    assert exact.exact and not drawn.exact and drawn.error < 0.01
    assert drawn.mean == pytest.approx(exact.mean, abs=4 * drawn.error + 1e-9)


def test_without_a_closed_form_the_floor_is_simulated_with_its_error() -> None:
    found = floor(parse("AP@4", norm="retrieved"), ranking([1, 0, 0, 1, 0, 0]))

    assert not found.exact and found.error > 0 and 0 < found.mean < 1
    with raises(UsageError):
        floor(parse("AP"), ranking([1, 1]), pool=1)
    with raises(UsageError):
        floor(parse("Judged@3"), ranking([1, 1]))


def test_every_preset_scores_a_run() -> None:
    for name in PRESETS:
        scores = evaluate(RUN, EVALUATING_QRELS, *preset(name).scoring)
        assert scores.queries[0] == "a" and len(scores.values) == len(preset(name).measures), name
    assert list(evaluate(RUN, EVALUATING_QRELS, *preset("inquire").scoring).values) == ["AP@50", "nDCG@50", "RR@50"]
    with raises(UsageError):
        preset("nothing")


def test_each_query_keeps_its_own_grades_in_a_random_order() -> None:
    """Three queries whose relevant images have one grade each: the mean of nDCG does not hang on which grade that is.

    One relevant image in a pool of two stands first or second: (1 + 1/log2(3)) / 2.
    """
    offsets, grades = np.array([0, 2, 4, 6]), np.array([3, 0, 1, 0, 2, 0], np.int32)
    ideal = np.array([3, 1, 2], np.int32)
    known = Aligned(["p", "q", "r"], offsets, grades, np.array([2.0, 1.0] * 3), np.array([0, 1, 2, 3]), ideal)

    drawn = simulated_floor(parse("nDCG"), known, rounds=2000)

    assert drawn.values == pytest.approx([(1 + 1 / np.log2(3)) / 2] * 3, abs=0.02)
