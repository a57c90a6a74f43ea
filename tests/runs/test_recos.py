"""ReCoS sets: three versions in two tables, and the released JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.runs import recos
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds


@pytest.mark.parametrize(
    ("version", "captioned", "others"), [("v0", ["a"], []), ("v1", ["a", "b"], []), ("v2", ["a", "b"], ["c"])]
)
def test_an_image_belongs_to_its_version_and_to_every_later_one(
    tmp_path: Path, version: str, captioned: list[str], others: list[str]
) -> None:
    found = recos.read(worlds.recos(tmp_path), version)

    assert list(found.captions.images) == captioned and list(found.others) == others
    assert {id: facts["image"] for id, facts in found.captions.texts.items()} == {
        f"t{image}": image for image in captioned
    }
    subtasks = [{name: facts["subtask"] for name, facts in found.captions.images.items()}]
    subtasks += [{facts["image"]: facts["subtask"] for facts in found.captions.texts.values()}]
    assert subtasks == [{image: {"a": "colour", "b": "count"}[image] for image in captioned}] * 2


def test_without_the_column_an_image_belongs_to_all_versions(tmp_path: Path) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / "images.csv", [{"image": "a"}, {"image": "b"}])

    assert list(recos.read(data, "v0").captions.images) == ["a", "b"]


def test_the_released_file_is_captions_by_image_and_its_folder_the_sub_task(tmp_path: Path) -> None:
    worlds.write(tmp_path / "recos_v1.json", {"images/colour/a.jpg": ["red", "blue"], "b.jpg": ["three"]})

    found = recos.read(tmp_path, "v1")

    assert [facts["text"] for facts in found.captions.texts.values()] == ["red", "blue", "three"]
    assert [facts["subtask"] for facts in found.captions.texts.values()] == ["colour", "colour", None]
    with raises(UsageError):
        recos.read(tmp_path, "v0")


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("images", [{"image": "a"}, {"image": "a"}]),
        ("images", [{"image": "a", "version": "v9"}]),
        ("images", [{"image": "c"}]),
        ("captions", [{"id": "t", "image": "a", "text": " "}]),
        ("captions", [{"id": "t", "image": "a", "text": "x"}] * 2),
        ("captions", [{"id": "t", "image": "c", "text": "x"}]),
        ("captions", [{"id": "t", "text": "x"}]),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, table: str, rows: list[dict[str, str]]) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / f"{table}.csv", rows)

    with raises(UsageError):
        recos.read(data, "v1")
    with raises(UsageError):
        recos.read(data, "v3")  # there is no such version
