"""Confidence and reliability of votes: by hand, and against the formulas written out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.rmir.panel import confidence, negativeness, reliability

VOTES = st.lists(st.sampled_from(["true", "false", "abstain"]), max_size=5)


@pytest.mark.parametrize(
    ("votes", "judges", "outcome"),
    [
        ("ttttt", 5, (True, 1.0)),
        ("ttttf", 5, (True, 0.8)),
        ("fffff", 5, (False, 1.0)),
        ("tttaa", 5, (True, 0.6)),
        ("taaaa", 5, (None, 0.0)),  # most abstain
        ("ttffa", 5, (None, 0.4)),
        ("ttaa", 4, (True, 0.5)),  # no more abstain than say true
        ("tttt", 5, (True, 0.8)),  # a judge that gave no vote is a judge nevertheless
        ("", 5, (None, 0.0)),
    ],
)
def test_confidence_by_hand(votes: str, judges: int, outcome: tuple[bool | None, float]) -> None:
    assert confidence(spelled(votes), judges) == outcome


@pytest.mark.parametrize(
    ("votes", "share"),
    [
        ("fffff", 1.0),
        ("ffftt", 0.6),
        ("fftta", 0.0),
        ("fffaa", 0.6),  # who abstains has answered
        ("ttttt", 0.0),
        ("ffff", 1.0),  # a judge that failed has not
        ("ffft", 0.75),
        ("ff", 0.0),  # under half of the panel
        ("", 0.0),
    ],
)
def test_negativeness_by_hand(votes: str, share: float) -> None:
    assert negativeness(spelled(votes), 5) == share


def test_reliability_by_hand() -> None:
    """Of four places the first was accepted, the second refused by 3 of 5, the third by all, the fourth is padding.

    Means from each place on: (0 + .6 + 1 + 1) / 4 = .65; (.6 + 1 + 1) / 3 = .8667; 1; 1. Their mean is .879167.
    """
    assert reliability([0.0, 0.6, 1.0], 4) == pytest.approx(0.879167, abs=1e-6)


def test_reliability_is_that_of_the_formula_on_a_thousand_random_tables() -> None:
    draw = random.Random(0)
    for _ in range(1000):
        judges, depth = draw.randint(1, 7), draw.randint(1, 16)
        found = draw.randint(0, depth)
        answered = [draw.randint(0, judges) for _ in range(found)]
        table = [[draw.choice(["true", "false", "abstain"]) for _ in range(votes)] for votes in answered]

        score = reliability([negativeness(votes, judges) for votes in table], depth)

        assert score == pytest.approx(by_the_formula(table, judges, depth), abs=1e-12)


def by_the_formula(table: list[list[str]], judges: int, depth: int) -> float:
    places = []
    for i in range(depth):
        refused = table[i].count("false") if i < len(table) else 0
        places.append(1.0 if i >= len(table) else refused / len(table[i]) if refused / judges >= 0.5 else 0.0)
    return sum(sum(places[i:]) / len(places[i:]) for i in range(depth)) / depth


@given(VOTES)
def test_confidence_knows_no_order_and_turning_all_votes_turns_the_verdict(votes: list[str]) -> None:
    turned = [{"true": "false", "false": "true"}.get(vote, vote) for vote in votes]
    verdict, share = confidence(votes, 5)
    assert confidence(sorted(votes), 5) == (verdict, share)
    assert confidence(turned, 5) == (None if verdict is None else not verdict, share)


@given(st.lists(st.floats(0, 1), max_size=16))
def test_reliability_lies_in_0_to_1_and_a_negative_further_down_raises_it(shares: list[float]) -> None:
    score = reliability(shares, 16)
    assert 0 <= score <= 1 + 1e-12
    assert reliability([*shares[:-1], 1.0] if shares else [], 16) >= score - 1e-12


def spelled(votes: str) -> list[str]:
    return [{"t": "true", "f": "false", "a": "abstain"}[letter] for letter in votes]
