"""A split keeps proportions, and hangs on nothing but the queries and the seed."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.rerank import apportioned, draw_stratified
from eyespot.types import UsageError
from tests.wording import raises

sizes = st.dictionaries(st.text(max_size=3), st.integers(0, 30), max_size=8)
shares = st.fractions(0, 1)


def test_the_remainders_decide_by_hand() -> None:
    # quotas 2.4 and 1.6; then 6.2, 2.5 and 1.3
    assert apportioned({"a": 6, "b": 4}, 4) == {"a": 2, "b": 2}
    assert apportioned({"a": 62, "b": 25, "c": 13}, 10) == {"a": 6, "b": 3, "c": 1}


def test_equal_remainders_are_settled_by_lot() -> None:
    winners = {name for seed in range(20) for name, n in apportioned({"a": 1, "b": 1}, 1, seed).items() if n}
    assert winners == {"a", "b"}


@given(sizes, shares, st.integers())
def test_counts_are_within_one_of_the_quota_and_sum_to_what_was_asked(
    sizes: dict[str, int], share: Fraction, seed: int
) -> None:
    total = sum(sizes.values())
    seats = int(share * total)
    counts = apportioned(sizes, seats, seed)
    assert sum(counts.values()) == seats
    assert all(0 <= counts[name] <= size for name, size in sizes.items())
    assert all(abs(counts[name] - Fraction(seats * size, total or 1)) < 1 for name, size in sizes.items())


@given(st.dictionaries(st.text(max_size=2), st.sets(st.integers(0, 999), max_size=9), max_size=5), shares, st.randoms())
def test_the_order_of_the_input_changes_nothing(
    numbers: dict[str, set[int]], share: Fraction, chance: random.Random
) -> None:
    strata = {name: [f"{name}/{one}" for one in ids] for name, ids in numbers.items()}
    seats = int(share * sum(map(len, strata.values())))
    turned = {name: chance.sample(strata[name], len(strata[name])) for name in chance.sample([*strata], len(strata))}
    taken = draw_stratified(strata, seats, 7)
    assert draw_stratified(turned, seats, 7) == taken and len(taken) == seats
    assert taken <= {id for ids in strata.values() for id in ids}


def test_another_seed_is_another_draw() -> None:
    strata = {"a": [str(number) for number in range(30)]}
    assert len({frozenset(draw_stratified(strata, 10, seed)) for seed in range(5)}) == 5


@pytest.mark.parametrize("seats", [-1, 4])
def test_what_cannot_be_taken_is_refused(seats: int) -> None:
    with raises(UsageError):
        apportioned({"a": 1, "b": 2}, seats)
