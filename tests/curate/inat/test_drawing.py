"""The draw of a species' share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.curate.inat.sampling import SpeciesObservations, draw, lots_of, round_robin
from eyespot.curate.inat.settings import Sampling
from tests.examples import examples
from tests.worlds.slow_inat import slow_turns


def candidates(count: int, seed: int = 0, **more: object) -> SpeciesObservations:
    random = np.random.default_rng(seed)
    made = {
        "mark": random.integers(0, 2**63, count).astype(np.uint64),
        "observer": random.integers(0, 20, count).astype(np.uint64),
        "group": np.arange(count),
        "latitude": random.uniform(40, 60, count),
        "longitude": random.uniform(-10, 30, count),
        "day": random.integers(18_000, 19_000, count),
    }
    return SpeciesObservations(**{**made, **more})  # type: ignore[arg-type]


def test_never_more_than_the_cap_and_never_fewer_than_there_are_and_no_more_clusters_than_asked_for() -> None:
    for count in (1, 5, 9, 10, 11, 400):
        turns = draw(3, candidates(count), Sampling(cap=10)).turn
        assert sorted(turns[turns >= 0].tolist()) == list(range(min(count, 10)))
    for clusters in (1, 3, 50):
        assert draw(0, candidates(200), Sampling(cap=10, clusters=clusters)).cluster.max() < clusters


def test_the_same_seed_draws_the_same_in_any_order_of_rows() -> None:
    of = candidates(300)
    order = np.argsort(of.mark)
    of = SpeciesObservations(**{name: column[order] for name, column in vars(of).items()})
    first, again = (draw(1, of, Sampling(cap=50, seed=7)).turn for _ in range(2))
    other = draw(1, of, Sampling(cap=50, seed=8)).turn
    assert (first == again).all() and (first != other).any()


def test_lots_are_the_same_on_every_machine() -> None:
    # SplitMix64 of state 0 begins with this number
    assert int(lots_of(np.zeros(1, np.uint64), 0)[0]) == int(lots_of(np.zeros(1, np.uint64), 2**64)[0])
    assert hex(int(lots_of(np.array([0xE220A8397B1DCDAF], np.uint64), 0)[0])) == "0xe220a8397b1dcdaf"


@pytest.mark.parametrize(
    "apart", [{"latitude": np.r_[np.full(99, 50.0), -30.0]}, {"day": np.r_[np.full(99, 18_000), 18_200]}]
)
def test_a_far_place_and_a_season_apart_have_their_turn_before_a_crowd_has_its_second(
    apart: dict[str, np.ndarray],
) -> None:
    crowd = {"latitude": np.full(100, 50.0), "longitude": np.full(100, 8.0), "day": np.full(100, 18_000)}
    turns = draw(0, candidates(100, **(crowd | apart)), Sampling(cap=2)).turn
    assert turns[99] >= 0 and (turns >= 0).sum() == 2


def test_new_groups_come_first_and_new_observers_next() -> None:
    cluster, first = np.zeros(4, np.int64), np.array([0])
    group, observer = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1])
    lots = np.array([0, 1, 2, 3], np.uint64)
    turns = round_robin((cluster, group, observer), lots, first, 4)
    # 0 by lot; 3 is of a new group and observer; 2 of a new group; 1 is the rest
    assert turns.tolist() == [0, 3, 2, 1]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 80), st.integers(1, 90), st.integers(0, 10**6))
def test_turns_are_those_of_the_slow_way(count: int, cap: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    group = random.integers(0, 15, count)
    of = (random.integers(0, 4, 15)[group], group, random.integers(0, 6, count))
    lots, first = lots_of(random.integers(0, 2**62, count).astype(np.uint64), seed), random.permutation(4)
    turns = round_robin(of, lots, first, cap)
    drawn = np.flatnonzero(turns >= 0)
    assert drawn[np.argsort(turns[drawn])].tolist() == slow_turns(of, lots, first.tolist(), cap)


def test_the_draw_is_wider_spread_than_one_by_lot() -> None:
    latitude = np.r_[np.random.default_rng(1).normal(50, 0.2, 900), np.random.default_rng(2).uniform(-50, 60, 100)]
    longitude = np.r_[np.random.default_rng(3).normal(8, 0.2, 900), np.random.default_rng(4).uniform(-180, 180, 100)]
    of = candidates(1000, latitude=latitude, longitude=longitude)
    taken = draw(0, of, Sampling(cap=100)).turn >= 0
    assert (np.abs(longitude[taken] - 8) > 2).sum() > 50  # by lot: about 10
    assert taken.sum() == 100
