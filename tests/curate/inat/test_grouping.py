"""Observation groups: one day, within a distance, by way of others."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.curate.inat.sampling import RADIUS, equal_cells, groups, spread
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.inat import great_circle
from tests.worlds.slow_inat import slow_groups

DEGREE = math.radians(1) * RADIUS  # kilometres of a degree of latitude


def together(places: list[tuple[float, float]], days: list[int] | None = None, km: float = 10.0) -> list[int]:
    """The group of each place, as the place of the group's first member."""
    latitude, longitude = np.array(places, float).T
    return groups(np.array(days or [0] * len(places)), latitude, longitude, km).tolist()


WIDE = DEGREE * math.cos(math.radians(70))


@pytest.mark.parametrize(
    "places",
    [
        lambda km: [(50, 8), (50 + km / DEGREE, 8)],
        lambda km: [(70, 8), (70, 8 + km / WIDE)],  # along a parallel far north
        lambda km: [(0, 180 - km / 2 / DEGREE), (0, -180 + km / 2 / DEGREE)],  # the antimeridian is no border
        lambda km: [(90 - km / 2 / DEGREE, 0), (90 - km / 2 / DEGREE, 180)],  # a pole has neighbours on all sides
        lambda km: [(-90 + km / 2 / DEGREE, 0), (-90 + km / 2 / DEGREE, 180)],
    ],
)
def test_what_is_nearer_than_ten_kilometres_is_one_group(places: Callable[[float], list[tuple[float, float]]]) -> None:
    assert together(places(9.9)) == [0, 0]
    assert together(places(10.1)) == [0, 1]


def test_a_pole_is_one_place_and_another_day_another_group() -> None:
    assert together([(90, 0), (90, 123)]) == together([(-90, 0), (-90, 123)]) == [0, 0]
    assert together([(50, 8), (50, 8), (50, 8)], [0, 0, 1]) == [0, 0, 2]


def test_a_chain_is_one_group() -> None:
    step = 9 / DEGREE
    assert great_circle((0, 0), (2 * step, 0)) == pytest.approx(18)
    assert together([(0, 0), (2 * step, 0), (step, 0)]) == [0, 0, 0]
    assert together([(0, 0), (2 * step, 0)]) == [0, 1]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_groups_are_those_of_all_pairs(data: st.DataObject) -> None:
    middle = data.draw(st.sampled_from([(0.0, 180.0), (89.95, 0.0), (-89.95, 50.0), (45.0, 10.0)]))
    offsets = st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
    places = data.draw(st.lists(offsets, min_size=1, max_size=40))
    wide = 100 if abs(middle[0]) > 80 else 1
    latitude = np.clip([middle[0] + up for up, _ in places], -90, 90)
    longitude = np.array([(middle[1] + along * wide + 180) % 360 - 180 for _, along in places])
    km = data.draw(st.sampled_from([1.0, 10.0, 40.0]))
    found = groups(np.zeros(len(places), np.int64), latitude, longitude, km)
    assert found.tolist() == slow_groups(latitude, longitude, km).tolist()


def test_a_distance_beyond_reason_is_refused() -> None:
    with raises(UsageError):
        together([(0, 0)], km=0.01)


def test_cells_are_of_one_area() -> None:
    random = np.random.default_rng(0)
    latitude = np.degrees(np.arcsin(random.uniform(-1, 1, 200_000)))  # evenly over the sphere
    counts = np.unique(equal_cells(latitude, random.uniform(-180, 180, 200_000), 30.0), return_counts=True)[1]
    full = np.sort(counts)[12:]  # the cells at the north pole are cut
    assert full.min() > 0.9 * full.max()


def test_spread_counts_cells_that_are_filled_evenly() -> None:
    assert spread(np.array([1, 1, 2, 2, 3, 3])) == pytest.approx(3)
    assert 1 < spread(np.array([1] * 9 + [2])) < 2
