"""The timeline and the places of a result: every photo is in one part, and each part's filter says which."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.web.found.summary import BARS, MONTHS, places_of, timeline_of
from tests.examples import examples

DAYS = st.lists(st.dates(date(1850, 1, 1), date(2100, 12, 31)), max_size=30)
LATITUDES, LONGITUDES = (  # to a centimetre, and many on edges of cells
    st.one_of(st.integers(-most * 10**7, most * 10**7).map(lambda at: at / 10**7), st.integers(-most, most).map(float))
    for most in (90, 180)
)
PLACES = st.lists(st.tuples(LATITUDES, LONGITUDES), min_size=1, max_size=30)


@settings(max_examples=examples(60))
@given(DAYS)
def test_every_dated_photo_is_in_one_bar_and_bars_join_without_a_gap(days: list[date]) -> None:
    found = timeline_of([{"taken": f"{day.isoformat()}T10:00:00"} for day in days] + [{}])
    if len({(day.year, day.month) for day in days}) < 2:
        assert found is None
        return
    assert found is not None and found["unknown"] == 1
    assert sum(bar["photos"] for bar in found["bars"]) == len(days)
    assert [bar["before"] for bar in found["bars"][:-1]] == [bar["after"] for bar in found["bars"][1:]]
    assert len(found["bars"]) <= max(MONTHS, BARS + 1)
    for bar in found["bars"]:  # ISO dates compare as text
        assert bar["photos"] == sum(bar["after"] <= day.isoformat() < bar["before"] for day in days)


@settings(max_examples=examples(60))
@given(PLACES)
def test_every_placed_photo_is_in_one_square_within_its_box(places: list[tuple[float, float]]) -> None:
    found = places_of([{"latitude": south, "longitude": west} for south, west in places] + [{"latitude": None}])
    assert found is not None and found["unknown"] == 1
    assert sum(cell["photos"] for cell in found["cells"]) == len(places)
    for cell in found["cells"]:
        south, west, north, east = map(float, cell["box"].split(","))
        assert cell["photos"] == sum(south <= a <= north and west <= b <= east for a, b in places)
        assert -90 <= south <= north <= 90 and -180 <= west <= east <= 180


def test_a_photo_on_the_edge_of_a_square_is_in_one_alone() -> None:
    found = places_of([{"latitude": 0.0, "longitude": float(east)} for east in range(25)])
    assert found is not None and found["step"] == 1
    assert [cell["box"].split(",")[1::2] for cell in found["cells"][:2]] == [["0", "0.9999999"], ["1", "1.9999999"]]


@pytest.mark.parametrize("taken", ["", "2021", "2021-13-01", None])
def test_what_is_no_date_is_unknown(taken: str | None) -> None:
    found = timeline_of([{"taken": "2021-01-02"}, {"taken": "2021-02-02"}, {"taken": taken}])
    assert found is not None and (found["unknown"], len(found["bars"])) == (1, 2)
