"""From a run and its qrels to scores: joining, rules, labels, intervals, JSON, the random floor, presets."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.metrics import (
    PRESETS,
    Aligned,
    Rules,
    aligned,
    bootstrap,
    evaluate,
    floor,
    parse,
    preset,
    simulated_floor,
)
from eyespot.types import Qrels, Run, UsageError
from tests.examples import examples
from tests.wording import check_wording, raises
from tests.worlds.rankings import ranking

RUN = Run.from_orders({"b": ["x", "y"], "a": ["z", "x", "w"], "other": ["x"]})
QRELS = Qrels({"a": {"x": 2, "w": 0, "v": 1}, "gone": {"x": 1}, "b": {"y": 0}})


def test_rows_are_the_judged_queries_in_the_order_of_the_qrels() -> None:
    found = aligned(RUN, QRELS)

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
    scores = evaluate(RUN, QRELS, ["RR"])
    strict = evaluate(RUN, QRELS, ["RR"], Rules(missing="skip", without_relevant="skip"))

    assert dict(zip(scores.queries, scores.values["RR"], strict=True)) == {"a": 0.5, "gone": 0, "b": 0}
    assert (scores.missing, scores.unjudged, scores.without_relevant) == (["gone"], ["other"], ["b"])
    assert (strict.queries, strict.means) == (["a"], {"RR": 0.5})
    assert [note.split()[0] for note in scores.notes] == ["1", "1", "1", "an"]
    assert evaluate(Run({"a": RUN["a"], "gone": []}), QRELS, ["RR"]).missing == ["gone", "b"]  # in whatever format


@pytest.mark.parametrize(("queries", "told"), [(9, True), (10, False)])
def test_an_interval_of_fewer_than_ten_queries_is_none_of_95_percent(queries: int, told: bool) -> None:
    run = Run.from_orders({f"q{at}": "ab" for at in range(queries)})

    notes = evaluate(run, Qrels({query: {"b": 1} for query in run}), ["RR"]).notes

    assert ["fewer than 10" in note for note in notes] == [True] * told


@pytest.mark.parametrize("first", [True, False])
def test_a_constant_scorer_is_told_from_a_perfect_one(first: bool) -> None:
    """Ten equal scores, of which the relevant one stands first or last in the file."""
    order = [f"i{at}" for at in range(10)][:: 1 if first else -1]
    scores = evaluate(Run.from_rankings({"q": [(name, 0.5) for name in order]}), Qrels({"q": {"i0": 1}}), ["AP@50"])

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


def test_trec_order_breaks_ties_by_descending_id() -> None:
    run = Run.from_rankings({"q": [("a", 1.0), ("b", 1.0)]})
    qrels = Qrels({"q": {"b": 1}})

    given_order, trec = (evaluate(run, qrels, ["RR"], Rules(order=order)) for order in ("given", "trec"))

    assert (given_order.mean("RR"), trec.mean("RR")) == (0.5, 1.0)


def test_a_cut_through_equal_scores_and_ids_that_do_not_match_are_told() -> None:
    run = Run.from_rankings({"q": [("a", 2.0), ("b", 1.0), ("c", 1.0)], "p": [("a", 3.0), ("b", 2.0), ("c", 1.0)]})

    *_, note = evaluate(run, Qrels({"q": {"b": 1}, "p": {"b": 1}}), ["P@1", "P@2"]).notes

    assert "whose order leaves P@2 between 0.2500 and 0.5000" in note
    check_wording(evaluate(Run.from_orders({"q": ["x.jpg"]}), Qrels({"q": {"x": 1}}), ["RR"]).notes[0])


def test_two_measures_of_one_name_are_spelled_out_and_the_same_one_stands_once() -> None:
    scores = evaluate(RUN, QRELS, ["AP@5", "AP(norm='min-k')@5", "AP@5", "RR"])

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
    scores = evaluate(RUN, QRELS, ["AP@50", "nDCG@10", "Hit@1"])

    report = json.loads(json.dumps(scores.as_json(per_query=True)))

    assert list(report["measures"]) == ["AP@50", "nDCG@10", "Hit@1"]
    assert report["measures"]["AP@50"]["mean"] == pytest.approx(0.25 / 3)
    assert report["measures"]["AP@50"]["definition"]["norm"] == "all"
    assert report["queries"]["a"]["AP@50"] == pytest.approx(0.25)
    assert "queries" not in scores.as_json()
    assert scores.take([0]).as_json()["measures"]["AP@50"]["mean"] == pytest.approx(0.25)


def test_more_relevant_hits_than_the_ideal_ranking_holds_are_refused() -> None:
    wrong = Aligned(["q"], np.array([0, 2]), np.array([1, 1]), np.array([2.0, 1.0]), np.array([0, 1]), np.array([1]))

    with raises(UsageError):
        parse("AP")(wrong)


def test_the_bootstrap_has_the_spread_of_the_mean() -> None:
    values = np.random.default_rng(3).normal(5, 2, 400)

    means = bootstrap(values, samples=4000)
    paired = bootstrap(np.column_stack([values, values + 1]), samples=50)

    assert means.mean() == pytest.approx(values.mean(), abs=0.02)
    assert means.std() == pytest.approx(values.std() / np.sqrt(400), rel=0.06)
    assert np.allclose(paired[:, 1] - paired[:, 0], 1)
    assert (bootstrap(values, 10) == bootstrap(values, 10)).all()


CLOSED = [
    *("AP", "AP@4", "AP(norm='min-k')@4", "nDCG", "nDCG@4", "nDCG(dcg='exp-log2')@4", "RR", "RR@3", "R@4", "Hit@4"),
    *("Success@4", "P@4", "P", "Rprec", "mAP@R", "Oracle@4", "R(rel=2)@4", "AP(rel=2)@4"),
]


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(0, 2))
def test_closed_forms_are_means_over_all_orders(grades: list[int], outside: int) -> None:
    """Every order of the pool, with relevant images outside the pool, too."""
    known = ranking(grades, sum(grade > 0 for grade in grades) + outside)
    orders = sorted(set(permutations(grades)))
    for spelling in CLOSED:
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
        scores = evaluate(RUN, QRELS, *preset(name).scoring)
        assert scores.queries[0] == "a" and len(scores.values) == len(preset(name).measures), name
    assert list(evaluate(RUN, QRELS, *preset("inquire").scoring).values) == ["AP@50", "nDCG@50", "RR@50"]
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
