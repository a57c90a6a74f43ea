"""Positions that are told, and names of files that lead nowhere else."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.inat.collection import file_name, find, places_of, published_position
from eyespot.curate.inat.settings import Positions
from tests.worlds.inat import great_circle

HOW = Positions()


def values(latitude: float, longitude: float, accuracy: float | None) -> tuple[object, ...]:
    return tuple(published_position(latitude, longitude, accuracy, HOW, hidden=False).values())


def test_an_accurate_position_is_told_as_it_is() -> None:
    assert values(50.123, 8.456, 10.0) == (50.123, 8.456, 10.0, False)
    assert values(50.123, 8.456, None) == (50.123, 8.456, None, False)


def test_a_listed_taxon_is_told_by_its_cell() -> None:
    place = published_position(50.123, 8.456, 10.0, HOW, hidden=True)
    assert (place["latitude"], place["longitude"], place["coarsened"]) == (50.1, 8.5, True)
    assert 13_000 < place["location_uncertainty"] < 13_500  # half the diagonal of 22.2 x 14.3 km


def test_poor_accuracy_is_told_by_its_cell_and_stays() -> None:
    assert values(50.123, 8.456, 10_000.0)[3] is False
    assert values(50.123, 8.456, 28_000.0) == (50.1, 8.5, 28_000.0, True)


@pytest.mark.parametrize("accuracy", [float("nan"), -1.0])
def test_an_accuracy_that_is_none_counts_as_unknown(accuracy: float) -> None:
    assert values(50.0, 8.0, accuracy) == (50.0, 8.0, None, False)


def test_a_boundless_accuracy_is_the_whole_earth() -> None:
    place = published_position(50.0, 8.0, float("inf"), HOW, hidden=False)
    assert place["coarsened"] and place["location_uncertainty"] == 20_015_115


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_the_true_position_is_within_the_uncertainty(latitude: float, longitude: float) -> None:
    place = published_position(latitude, longitude, None, HOW, hidden=True)
    assert abs(place["latitude"]) <= 90 and -180 <= place["longitude"] < 180
    away = 1000 * great_circle((latitude, longitude), (place["latitude"], place["longitude"]))
    assert away <= place["location_uncertainty"] + 1


@given(st.floats(-89, 89), st.floats(-179, 179), st.floats(0, 0.19))
def test_a_cell_tells_nothing_of_where_in_it(latitude: float, longitude: float, aside: float) -> None:
    west, south = math.floor(longitude / 0.2) * 0.2 + 0.005, math.floor(latitude / 0.2) * 0.2 + 0.005
    one = published_position(south, west, 5.0, HOW, hidden=True)
    other = published_position(south + aside, west + aside, 90.0, HOW, hidden=True)
    assert all(one[name] == other[name] for name in ("latitude", "longitude"))


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "sub/../../secret.jpg"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    (tmp_path / "secret.jpg").write_bytes(b"x")
    assert find(tmp_path / "photos", [name]) is None


def test_a_link_does_not_lead_out_either(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "photos" / "a.jpg").symlink_to(tmp_path / "secret.jpg")
    assert find(tmp_path / "photos", ["a.jpg"]) is None


@pytest.mark.parametrize("place", ["12.jpg", "12/original.jpg", "12/medium.jpg", "uuid.jpg"])
def test_a_photo_is_found_as_the_store_names_it(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(b"x")
    assert find(tmp_path, places_of("12.jpg", "uuid")) == tmp_path / place


def test_a_photo_keeps_its_id_where_that_is_a_name() -> None:
    assert file_name("1f-0", "00001_Aus") == "train/00001_Aus/1f-0.jpg"
    odd = file_name("../../x y.jpg", "00001_Aus")
    assert odd.startswith("train/00001_Aus/") and odd.count("/") == 2 and ".." not in odd
