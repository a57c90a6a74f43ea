"""Comparing runs: differences, tests and corrections that can be checked by hand or against another's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
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
from tests.wording import raises

FEW = Resampling(samples=200)
VALUES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=24)


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


def test_the_queries_that_moved_most_come_first_and_equals_as_judged() -> None:
    pair = two([0.5, 0, 1, 0, 1], [1, 0.5, 0, 0.75, 1]).of("b", "RR")

    assert [(move.query, move.difference) for move in pair.up(2)] == [("q3", 0.75), ("q0", 0.5)]
    assert pair.down(2) == [("q2", 1, 0, -1)]


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


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_few_differences_are_tested_by_every_sign(differences: list[int]) -> None:
    """With whole numbers, so that the brute force has no rounding of its own."""
    sums = [sum(map(np.multiply, differences, signs)) for signs in product((1, -1), repeat=len(differences))]
    expected = np.mean([abs(one) >= abs(sum(differences)) for one in sums])

    (found,) = sign_flips(np.array(differences)[:, None] / 7)

    assert found == (pytest.approx(expected), True)


def test_what_is_drawn_agrees_with_what_is_counted() -> None:
    """Twenty differences are counted; the same with a twenty-first of next to nothing are drawn."""
    differences = np.random.default_rng(1).normal(0.3, 1, 20)

    counted, drawn = (
        sign_flips(column[:, None], Resampling(samples=20_000))[0]
        for column in (differences, np.append(differences, 1e-8))
    )

    assert (counted.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(counted.p, abs=4 * np.sqrt(counted.p * (1 - counted.p) / 20_000))


def test_each_column_is_tested_as_if_alone_and_no_p_is_zero() -> None:
    both = np.random.default_rng(2).normal(0.2, 1, (40, 2))

    assert sign_flips(both) == [*sign_flips(both[:, :1]), *sign_flips(both[:, 1:])]
    assert sign_flips(np.ones((20, 1))) == [(2 / 2**20, True)]  # twenty wins have two signs of a million
    assert sign_flips(np.ones((200, 1)), Resampling(samples=99)) == [(1 / 100, False)]


def test_interval_and_bootstrap_agree_with_their_normal_limits() -> None:
    """300 differences with mean 0.1 and deviation 1: two thirds of the mean's own deviation apart from 0."""
    drawn = np.random.default_rng(0).normal(0, 1, 300)
    differences = 0.1 + (drawn - drawn.mean()) / drawn.std()
    pair = two([0.0] * 300, differences.tolist(), Resampling(samples=10_000)).of("b", "RR")

    error = 1 / np.sqrt(300)
    assert pair.interval == pytest.approx((0.1 - 1.96 * error, 0.1 + 1.96 * error), abs=0.005)
    assert pair.bootstrap_p == pytest.approx(0.0833, abs=0.015)  # of z = 0.1 √300 = 1.732, two-sided
    assert pair.flips.p == pytest.approx(0.0833, abs=0.015)


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


QRELS = Qrels({"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}})
WHOLE, PART = Run.from_orders({query: ["a"] for query in "pqr"}), Run.from_orders({"p": ["b", "a"], "r": ["a"]})


def test_a_missing_query_scores_zero_and_is_noted() -> None:
    found = compare({name: evaluate(run, QRELS, ["RR"]) for name, run in (("whole", WHOLE), ("part", PART))}, FEW)

    assert [move.difference for move in found.of("part", "RR").moves()] == [-0.5, -1, 0]
    assert [note.split(" ")[0] for note in found.notes[:2]] == ["an", "part:"]  # what is said of both stands once


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


@pytest.mark.long
def test_the_page_on_comparing_runs_as_it_stands(tmp_path: Path) -> None:
    page, env = ROOT / "docs" / "compare.md", tools(tmp_path)
    script = "set -e\n" + "\n".join(blocks(page, "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    (code,) = blocks(page, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert (shell.returncode, python.returncode) == (0, 0), shell.stderr + python.stderr
    assert "RR " in shell.stdout and (tmp_path / "chosen.html").exists()
