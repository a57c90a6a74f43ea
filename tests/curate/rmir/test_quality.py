"""The checks that open the card: nonsense comes out red, and what a person decided stands there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from eyespot.curate.rmir.audit import LAST, VERDICTS
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.making import card_content, write_set
from eyespot.curate.rmir.panel import settle_votes
from eyespot.curate.rmir.quality import effective_judges, order_check, panel_checks, shortcut_check, shortcuts
from eyespot.pipelines import Record
from eyespot.pipelines.data_card import QualityCheck, worst
from eyespot.pipelines.human_review import Queue

SEATS = ["a", "b", "c", "d", "e"]


def triplets(queries: int, random: bool, alone: bool) -> list[Record]:
    """Ten hits of each query; `random` verdicts ignore their places, `alone` each judge has its own."""
    chance = Random(5)
    found: list[Record] = []
    for query in range(queries):
        for place in range(10):
            share = 0.3 if random else 0.9 - 0.09 * place
            common = chance.random() < share
            verdicts = [chance.random() < share if alone else common ^ (chance.random() < 0.03) for _ in SEATS]
            votes = [
                {"judge": seat, "verdict": "true" if yes else "false"}
                for seat, yes in zip(SEATS, verdicts, strict=True)
            ]
            found.append({"id": f"{query}/{place}", "query": str(query), "votes": votes})
    return found


def levels(found: list[Record]) -> list[str]:
    hits: dict[str, list[Record]] = {}
    for one in found:
        hits.setdefault(one["query"], []).append(one)
    levels = {check.what: check.level for check in [*panel_checks(found, SEATS), order_check(hits, len(SEATS))]}
    return [levels[name] for name in ("Agreement of the judges", "Verdicts and the order of hits")]


@pytest.mark.parametrize(
    ("random", "alone", "found"),
    [(True, True, ["red", "red"]), (True, False, ["green", "red"]), (False, False, ["green", "green"])],
)
def test_judges_that_agree_at_random_are_red(random: bool, alone: bool, found: list[str]) -> None:
    """Also where they agree with each other, as one model that sits five times does."""
    assert levels(triplets(150, random, alone)) == found


@pytest.mark.parametrize(
    ("votes", "count"),
    [
        (["tttft", "tftff", "ffftf"], None),
        (["ttttf", "fffft", "ttttf"], 2),  # four that never differ, and one
        (["ttttt", "fffff"], 1),  # nothing tells them apart
        (["ftttt", "tfttt", "ttftt", "tttft", "ttttf"], 5),
        (["ffttt", "ttfff", "tttft", "ffftf", "ttttf"], 4),  # two that err together
    ],
)
def test_effective_number_of_judges(votes: list[str], count: int | None) -> None:
    given = [dict(zip(SEATS, line, strict=True)) for line in votes]
    found = effective_judges(given, SEATS)
    assert 1 <= found <= 5 and (count is None or found == pytest.approx(count))


def test_a_small_demonstration_is_red_and_one_query_tells_nothing_of_shortcuts(demonstrated: FinishedSteps) -> None:
    checks = card_content(demonstrated).checks
    alone = FinishedSteps(demonstrated.pipe, demonstrated.done)
    alone.__dict__["queries"] = demonstrated.queries[:1]

    assert worst(checks) == "red"
    assert {one.level for one in checks if one.what in ("Size of the pool", "A person's audit")} == {"red"}
    assert shortcut_check(shortcuts(alone, alone.queries)).level == "red"


def test_what_a_person_decided_reaches_the_card(copied: Path, demonstrated: FinishedSteps) -> None:
    """They agree with the panel but in one case, and accept every second last hit."""
    panel = {one["id"]: bool(settle_votes(one, 3)[0]) for one in demonstrated.triplets}
    unread, queue, last = audit_check(copied, demonstrated), *(Queue(copied / "audit" / n) for n in (VERDICTS, LAST))
    for number, (id, case) in enumerate(queue.cases.items()):
        queue.decide(case, "accept" if panel[id] is (number > 0) else "drop", "ada")
    for number, case in enumerate(last.cases.values()):
        last.decide(case, "accept" if number % 2 else "drop", "ada")

    write_set(demonstrated, copied)

    check, count = audit_check(copied, demonstrated), len(queue.cases)
    assert unread.level == "red" and check.level != "red"
    assert f"{count - 1} of {count} " in check.text and f" 0 of {count} " in check.text
    text = (copied / "set" / "README.md").read_text(encoding="utf-8")
    assert f"| all | {count - 1} | {count} |" in text and "Wilson's interval, 95%" in text
    assert "Cohen's d" in text and text.index("## Checks") < text.index("## What became of the records")


def audit_check(copied: Path, found: FinishedSteps) -> QualityCheck:
    return next(one for one in card_content(found, copied / "audit").checks if one.what == "A person's audit")
