"""The audit: what a person is shown, and what their decisions say of the panel."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.curate.rmir.audit import (
    LAST,
    PANEL,
    VERDICTS,
    agreed,
    agreements,
    compared,
    last_hits,
    read_panel,
    said_in,
    welch,
)
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.panel import settle_votes
from eyespot.pipelines.data_card import wilson
from eyespot.pipelines.human_review import Queue
from eyespot.types import UsageError
from tests.wording import raises


@pytest.fixture
def audit(copied: Path) -> Path:
    """The folder of the queues."""
    return copied / "audit"


def decided(queue: Path, verdicts: dict[str, bool]) -> None:
    opened = Queue(queue)
    for id, case in opened.cases.items():
        opened.decide(case, "accept" if verdicts[id] else "drop", "ada")


def test_a_case_does_not_tell_what_the_panel_said(audit: Path, demonstrated: FinishedSteps) -> None:
    words = {one["verdict"] for one in demonstrated.votes()} | {"confidence", "split"}
    assert all(not words & set(case.why.split()) and not case.texts for case in Queue(audit / VERDICTS).cases.values())


def test_who_says_what_the_panel_says_agrees_always_and_who_says_yes_on_the_targets(
    audit: Path, demonstrated: FinishedSteps
) -> None:
    panel = {one["id"]: bool(settle_votes(one, 3)[0]) for one in demonstrated.triplets}
    cases = Queue(audit / VERDICTS).cases
    right = {one["id"] for one in demonstrated.records("confident") if one["answers"]}

    decided(audit / VERDICTS, panel)
    found = {one.kind: one for one in agreements(demonstrated, audit)}
    decided(audit / VERDICTS, dict.fromkeys(cases, True))
    yes = {one.kind: one for one in agreements(demonstrated, audit)}

    assert found["all"].agreed == found["all"].cases == len(cases)
    assert found["all"].cases == sum(one.cases for kind, one in found.items() if kind != "all")
    assert yes["all"].agreed == len(right.intersection(cases)) > 0


def test_last_hits_are_grouped_by_what_the_person_says(audit: Path, demonstrated: FinishedSteps) -> None:
    cases = list(Queue(audit / LAST).cases)
    decided(audit / LAST, {id: at % 2 == 0 for at, id in enumerate(cases)})

    found = last_hits(demonstrated, audit)

    assert set(cases) <= {hits[-1]["id"] for hits in demonstrated.hits.values()}
    assert found is not None
    assert (found.accepted, found.rejected) == ((len(cases) + 1) // 2, len(cases) // 2)


def test_the_sealed_verdicts_are_enough_to_compare_without_the_recipe(audit: Path, demonstrated: FinishedSteps) -> None:
    for name in (VERDICTS, LAST):
        decided(audit / name, {id: at % 2 == 1 for at, id in enumerate(Queue(audit / name).cases)})

    panel = read_panel(audit)

    assert set(panel) == {id for name in (VERDICTS, LAST) for id in Queue(audit / name).cases}
    assert agreed(panel, said_in(audit / VERDICTS)) == agreements(demonstrated, audit) != []
    assert compared(panel, said_in(audit / LAST)) == last_hits(demonstrated, audit) is not None


def test_without_sealed_verdicts_there_are_none_and_a_line_that_is_none_is_refused(tmp_path: Path) -> None:
    assert read_panel(tmp_path) == {}
    (tmp_path / PANEL).write_text('{"id": "x"}\n')
    with raises(UsageError):
        read_panel(tmp_path)


def test_welch_by_hand() -> None:
    """Means 2 and 5, variances 1 and 4, 3 of each: t = -3 / sqrt(5/3), ν = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.9412.

    The chances are those of scipy.stats.ttest_ind(…, equal_var=False).
    """
    found = welch([1, 2, 3], [3, 5, 7])

    assert (found.difference, found.t) == (-3, pytest.approx(-2.323790))
    assert (found.freedom, found.effect) == (pytest.approx(2.941176), pytest.approx(-3 / 2.5**0.5))
    assert found.p == pytest.approx(0.10447888668472192, rel=1e-9)
    other = welch([0.9, 0.8, 0.95, 0.4, 0.7, 0.99], [0.2, 0.5, 0.1, 0.6])
    assert other.p == pytest.approx(0.024585320896303012, rel=1e-9)


def test_the_papers_two_groups() -> None:
    """82 and 68 queries 0.27 apart at p = 2.4e-11: with a spread of about 0.23 a t of 7.2 says just that."""
    first = [0.6 + 0.23 * (-1) ** at for at in range(82)]
    second = [0.33 + 0.23 * (-1) ** at for at in range(68)]
    found = welch(first, second)
    assert found.difference == pytest.approx(0.27)
    assert 1e-12 < found.p < 1e-9


def test_no_spread_at_all_is_no_error() -> None:
    assert welch([1, 1], [1, 1]).p == 1
    assert welch([1, 1], [0, 0]).p == 0


def test_wilsons_interval() -> None:
    """81 of 100: the middle is (0.81 + 0.019207) / 1.038415 = 0.798532, half the width 0.076320."""
    assert wilson(81, 100) == (pytest.approx(0.722212, abs=1e-6), pytest.approx(0.874852, abs=1e-6))
    assert wilson(0, 0) == (0, 1)
