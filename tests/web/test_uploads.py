"""Pictures that people bring: many at once are all kept, and the longest unused go first."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams, query_of
from eyespot.web.pictures import KEPT, keep, upload_jpeg
from tests.wording import raises


def picture(shade: int) -> bytes:
    """A picture of its own for each of 0 to 255."""
    data = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(data, "PNG")
    return data.getvalue()


def bring(folder: Path, shade: int) -> str:
    return keep(folder, picture(shade), 1 << 20)


def fill(folder: Path, count: int, at: float) -> None:
    """So many pictures that were last used at a time."""
    for number in range(count):
        place = folder / f"{number % 256:02x}" / f"{number:032x}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
        os.utime(place, (at, at))


def uploads_in(folder: Path) -> list[Path]:
    return [place for place in folder.glob("??/*") if not place.suffix]


@pytest.mark.long
def test_many_at_once_are_all_kept_while_others_go(tmp_path: Path) -> None:
    fill(tmp_path, KEPT, at=1000.0)
    with ThreadPoolExecutor(10) as people:
        brought = list(people.map(lambda shade: bring(tmp_path, shade), range(60)))
    assert [bool(upload_jpeg(tmp_path, digest)) for digest in brought] == [True] * 60
    assert len(uploads_in(tmp_path)) == KEPT


def test_the_same_picture_of_many_people_is_kept_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(10) as people:
        brought = set(people.map(lambda _: bring(tmp_path, 7), range(60)))
    assert [place.name for place in uploads_in(tmp_path)] == [*brought]


@pytest.mark.parametrize("used", ["looked at", "searched with", "not at all"])
def test_the_longest_unused_goes_first(tmp_path: Path, used: str) -> None:
    digest = bring(tmp_path, 1)
    os.utime(tmp_path / digest[:2] / digest, (500.0, 500.0))
    fill(tmp_path, KEPT - 1, at=1000.0)
    if used == "looked at":
        upload_jpeg(tmp_path, digest)
    elif used == "searched with":
        query_of(SearchParams(picture=digest), tmp_path)

    bring(tmp_path, 2)

    assert (tmp_path / digest[:2] / digest).exists() == (used != "not at all")


def test_pictures_that_went_or_take_too_much_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYESPOT_DECODE_MEMORY", "10M")
    long = io.BytesIO()
    Image.new("L", (1, 1_000_000)).save(long, "PNG")  # a kilobyte that would take 21 MB

    with raises(Problem) as gone:
        query_of(SearchParams(picture="0" * 32), tmp_path)
    with raises(Problem) as large:
        keep(tmp_path, long.getvalue(), 1 << 20)

    assert (gone.value.status, large.value.status) == (404, 422)
