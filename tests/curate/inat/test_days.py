"""The day on which an observation was made, where it was made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from eyespot.curate.inat.tables import BAD_DATE, LONG_DATE, NO_DATE, Tables, know_days, opened, quoted

FIRST, SECOND = date(2022, 5, 1), date(2022, 5, 2)


def local_day(tables: Tables, text: str, longitude: float) -> date | str:
    """The day of a date at a longitude, or why there is none."""
    arguments = f"{quoted(text)}, CAST({longitude} AS DOUBLE)"
    ((day, fault),) = tables.rows(f"SELECT local_day({arguments}), date_fault({arguments})")
    return fault or day  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    with opened(Path(tmp_path_factory.mktemp("days")) / "spill", 0.5, 1) as tables:
        know_days(tables)
        yield tables


@pytest.mark.parametrize(
    ("text", "longitude", "day"),
    [
        ("2022-05-01", 0, FIRST),
        ("2022-05-01T23:59:59-07:00", -120, FIRST),
        ("2022-05-02T00:00:00-07:00", -120, SECOND),
        ("2022-05-02T06:30:00Z", -120, FIRST),  # 22:30 by the sun
        ("2022-05-01T22:00:00Z", 151, SECOND),  # 8:04 by the sun
        ("2022-05-02 02:00:00 UTC", -120, FIRST),  # 18:00 by the sun
        ("2022-05-01 22:00:00 GMT", 151, SECOND),
        ("2022-05-02 02:00:00 UTC+02:00", -120, SECOND),
        ("2022-05-01T23:30:00+00:00", 0, FIRST),
        ("2022-05-01T23:30:00+0530", 80, FIRST),
        ("2022-05-01 10:30", 80, FIRST),
        ("2022-05-01/2022-05-01", 0, FIRST),
        ("2022-05-01T10:00Z/11:00Z", 0, FIRST),
        ("2022-05-01T23:00:00-07:00/2022-05-01T23:50:00-07:00", -120, FIRST),
    ],
)
def test_the_local_day(tables: Tables, text: str, longitude: float, day: date) -> None:
    assert local_day(tables, text, longitude) == day


LONG = ("2022-05", "2022", "2022/2023", "2022-05-01/03", "2022-05-01/2022-05-02")
BAD = ("2022-02-30", "yesterday", "2022-05-01T25:00:00", "5/1/2022", "2022/05/01", "2022-05-01/unknown")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", NO_DATE),
        *((text, BAD_DATE) for text in BAD),
        *((text, LONG_DATE) for text in (*LONG, "2022-05-01T23:30:00-07:00/2022-05-02T00:30:00-07:00")),
    ],
)
def test_what_names_no_day_says_why(tables: Tables, text: str, why: str) -> None:
    assert local_day(tables, text, 0) == why
