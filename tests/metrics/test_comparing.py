"""Comparing runs: differences, tests and corrections that can be checked by hand or against another's."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.metrics import Comparison, Resampling, Rules, Scores, compare, corrected, evaluate, parse, sign_flips
from eyespot.types import Qrels, Run, UsageError
from tests.examples import examples
from tests.pages import ROOT, blocks, tools

FEW = Resampling(samples=200)
VALUES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=24)


def scores(values: list[float], queries: list[str] | None = None, measure: str = "RR") -> Scores:
    names = queries or [f"q{row}" for row in range(len(values))]
    return Scores(names, {measure: np.array(values, float)}, {measure: parse(measure)}, Rules())


def two(before: list[float], after: list[float], how: Resampling = FEW) -> Comparison:
    return compare({"a": scores(before), "b": scores(after)}, how)


# -- differences --------------------------------------------------------------------------------------------


def test_means_difference_wins_and_effect_by_hand() -> None:
    pair = two([0.5, 0.25, 1, 0], [1, 0.5, 0.75, 0]).of("b", "RR")

    assert pair.means == (0.4375, 0.5625)
    assert pair.difference == 0.125
    assert (pair.wins, pair.losses, pair.ties) == (2, 1, 1)
    assert pair.effect == pytest.approx(0.125 / np.sqrt((0.375**2 + 0.125**2 + 0.375**2 + 0.125**2) / 3))


def test_the_queries_that_moved_most_come_first_and_equals_as_judged() -> None:
    pair = two([0.5, 0, 1, 0, 1], [1, 0.5, 0, 0.75, 1]).of("b", "RR")

    assert [(move.query, move.difference) for move in pair.up(2)] == [("q3", 0.75), ("q0", 0.5)]
    assert pair.down(2) == [("q2", 1, 0, -1)]


def test_differences_by_rounding_are_ties() -> None:
    pair = two([0.1 + 0.2, 0.5], [0.3, 0.5]).of("b", "RR")

    assert (pair.wins, pair.losses, pair.ties, pair.difference) == (0, 0, 2, 0)


def test_an_effect_without_spread_is_no_number() -> None:
    assert np.isnan(two([0, 0], [0.5, 0.5]).of("b", "RR").effect)
    assert np.isnan(two([0], [0.5]).of("b", "RR").effect)


def test_a_run_against_itself_shows_nothing() -> None:
    pair = two([0.5, 0.2, 1], [0.5, 0.2, 1]).of("b", "RR")

    assert (pair.flips, pair.bootstrap_p, pair.corrected_p) == ((1.0, True), 1.0, 1.0)
    assert (pair.wins, pair.losses, pair.interval, pair.effect) == (0, 0, (0, 0), 0)


@settings(deadline=None, max_examples=examples(60))
@given(VALUES)
def test_swapping_the_runs_turns_the_differences_and_keeps_the_ps(values: list[tuple[int, int]]) -> None:
    before, after = ([each[side] / 12 for each in values] for side in (0, 1))
    there, back = two(before, after).of("b", "RR"), two(after, before).of("b", "RR")

    assert there.difference == -back.difference
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert (there.flips, there.bootstrap_p) == (back.flips, back.bootstrap_p)
    assert there.interval == pytest.approx([-end for end in reversed(back.interval)])
    assert [m.query for m in there.up(30)] == [m.query for m in back.down(30)]


# -- tests --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_few_differences_are_tested_by_every_sign(differences: list[int]) -> None:
    """With whole numbers, so that the brute force has no rounding of its own."""
    sums = [sum(map(np.multiply, differences, signs)) for signs in product((1, -1), repeat=len(differences))]
    expected = np.mean([abs(one) >= abs(sum(differences)) for one in sums])

    (found,) = sign_flips(np.array(differences)[:, None] / 7)

    assert found == (pytest.approx(expected), True)


def test_twenty_wins_alone_have_two_signs_of_a_million() -> None:
    (found,) = sign_flips(np.ones((20, 1)))

    assert found == (2 / 2**20, True)


def test_many_differences_agree_with_another_permutation_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    before, after = rng.random(60), rng.random(60) + 0.07
    theirs = stats.permutation_test(
        (after, before),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(4),
    ).pvalue

    (ours,) = sign_flips((after - before)[:, None], Resampling(samples=20_000))

    assert not ours.exact and 0.01 < theirs < 0.5  # where an error would show
    error = np.sqrt(2 * theirs * (1 - theirs) / 20_000)
    assert abs(ours.p - theirs) < 4 * error


def test_what_is_drawn_agrees_with_what_is_counted() -> None:
    """Twenty differences are counted; the same with a twenty-first of next to nothing are drawn."""
    differences = np.random.default_rng(1).normal(0.3, 1, 20)

    counted, drawn = (
        sign_flips(column[:, None], Resampling(samples=20_000))[0]
        for column in (differences, np.append(differences, 1e-8))
    )

    assert (counted.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(counted.p, abs=4 * np.sqrt(counted.p * (1 - counted.p) / 20_000))


def test_a_drawn_p_is_never_zero() -> None:
    (found,) = sign_flips(np.ones((200, 1)), Resampling(samples=99))

    assert found == (1 / 100, False)


def test_each_column_is_tested_as_if_alone() -> None:
    both = np.random.default_rng(2).normal(0.2, 1, (40, 2))

    assert sign_flips(both) == [*sign_flips(both[:, :1]), *sign_flips(both[:, 1:])]


def test_interval_and_bootstrap_agree_with_their_normal_limits() -> None:
    """300 differences with mean 0.1 and deviation 1: two thirds of the mean's own deviation apart from 0."""
    drawn = np.random.default_rng(0).normal(0, 1, 300)
    differences = 0.1 + (drawn - drawn.mean()) / drawn.std()
    pair = two([0.0] * 300, differences.tolist(), Resampling(samples=10_000)).of("b", "RR")

    error = 1 / np.sqrt(300)
    assert pair.interval == pytest.approx((0.1 - 1.96 * error, 0.1 + 1.96 * error), abs=0.005)
    assert pair.bootstrap_p == pytest.approx(0.0833, abs=0.015)  # of z = 0.1 √300 = 1.732, two-sided
    assert pair.flips.p == pytest.approx(0.0833, abs=0.015)


def test_another_seed_draws_otherwise_and_the_same_does_not() -> None:
    values = np.random.default_rng(5).random(50).tolist()
    first, same, other = (two([0.4] * 50, values, Resampling(500, seed)).of("b", "RR").interval for seed in (0, 0, 1))

    assert first == same != other


# -- many tests ---------------------------------------------------------------------------------------------


def test_corrections_by_hand() -> None:
    ps = [0.01, 0.04, 0.03, 0.5]

    assert corrected(ps, "holm") == pytest.approx([0.04, 0.09, 0.09, 0.5])  # 4 · 0.01, then 3 · 0.03 holds 2 · 0.04
    assert corrected(ps, "bonferroni") == pytest.approx([0.04, 0.16, 0.12, 1])
    assert corrected(ps, "none") == ps


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(ps: list[float]) -> None:
    stepped, whole = corrected(ps, "holm"), corrected(ps, "bonferroni")

    assert all(p <= one <= all_ for p, one, all_ in zip(ps, stepped, whole, strict=True))
    assert (np.diff(np.array(stepped)[np.argsort(ps)]) >= 0).all()


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


@pytest.mark.parametrize(("given", "why"), [({"samples": 0}, "1 or more, not 0"), ({"seed": -1}, "0 or more, not -1")])
def test_draws_are_counted_from_one_and_seeds_from_zero(given: dict[str, int], why: str) -> None:
    assert (Resampling(samples=1).samples, Resampling(seed=0).seed) == (1, 0)
    with pytest.raises(UsageError, match=why):
        Resampling(**given)


# -- which queries ------------------------------------------------------------------------------------------

QRELS = Qrels({"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}})
WHOLE, PART = Run.from_orders({query: ["a"] for query in "pqr"}), Run.from_orders({"p": ["b", "a"], "r": ["a"]})


def test_a_missing_query_scores_zero_and_is_noted() -> None:
    found = compare({name: evaluate(run, QRELS, ["RR"]) for name, run in (("whole", WHOLE), ("part", PART))}, FEW)

    assert [move.difference for move in found.of("part", "RR").moves()] == [-0.5, -1, 0]
    assert found.notes[0] == "part: 1 of 3 judged queries missing from the run; they score 0"


def test_a_query_that_the_rules_skip_is_left_out_on_both_sides() -> None:
    rules = Rules(missing="skip")
    found = compare({n: evaluate(run, QRELS, ["RR"], rules) for n, run in (("whole", WHOLE), ("part", PART))}, FEW)

    assert [(move.query, move.difference) for move in found.of("part", "RR").moves()] == [("p", -0.5), ("r", 0)]
    assert "part: compared on the 2 queries that whole has values for, too" in found.notes


def test_queries_are_paired_by_name_in_whatever_order() -> None:
    found = compare({"a": scores([0.1, 0.9], ["x", "y"]), "b": scores([0.8, 0.1], ["y", "x"])}, FEW)

    assert [(move.query, round(move.difference, 9)) for move in found.of("b", "RR").moves()] == [("x", 0), ("y", -0.1)]


def test_too_few_queries_to_show_anything_are_noted() -> None:
    assert two([0] * 5, [1] * 5).notes == [
        "1 of 1 tests have at most 5 differing queries, which cannot give a p below 0.0625"
    ]
    assert two([0] * 6, [1] * 6).notes == []


@pytest.mark.parametrize(
    ("others", "part"),
    [
        ({}, "two runs or more"),
        ({"b": scores([1], ["z"])}, "no query in common"),
        ({"b": scores([1], ["q0"], "Hit@1")}, "other measures"),
    ],
)
def test_what_cannot_be_compared_is_refused(others: dict[str, Scores], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        compare({"a": scores([1], ["q0"])} | others)


@pytest.mark.parametrize(("samples", "seed"), [(0, 0), (1, -1)])
def test_settings_that_draw_nothing_are_refused(samples: int, seed: int) -> None:
    with pytest.raises(UsageError):
        Resampling(samples, seed)


def test_an_unknown_correction_is_refused() -> None:
    with pytest.raises(UsageError, match="holm, bonferroni, none"):
        compare({"a": scores([1]), "b": scores([1])}, FEW, "sidak")


def test_what_was_not_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="compared were: b by RR"):
        two([1], [1]).of("c", "RR")


# -- the page -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_page_on_comparing_runs_as_it_stands(tmp_path: Path) -> None:
    page, env = ROOT / "docs" / "compare.md", tools(tmp_path)
    script = "set -e\n" + "\n".join(blocks(page, "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    (code,) = blocks(page, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert (shell.returncode, python.returncode) == (0, 0), shell.stderr + python.stderr
    assert "RR " in shell.stdout and (tmp_path / "chosen.html").exists()
