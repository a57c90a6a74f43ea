"""ReCoS sets: three versions in two tables, and the released JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.runs import recos
from eyespot.types import UsageError
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


def test_captions_have_the_sub_task_of_their_image(tmp_path: Path) -> None:
    found = recos.read(worlds.recos(tmp_path), "v1").captions

    assert {id: facts["subtask"] for id, facts in found.texts.items()} == {"ta": "colour", "tb": "count"}
    assert {name: facts["subtask"] for name, facts in found.images.items()} == {"a": "colour", "b": "count"}


def test_without_the_column_an_image_belongs_to_all_versions(tmp_path: Path) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / "images.csv", [{"image": "a"}, {"image": "b"}])

    assert list(recos.read(data, "v0").captions.images) == ["a", "b"]


def test_the_released_file_is_captions_by_image_and_its_folder_the_sub_task(tmp_path: Path) -> None:
    worlds.write(tmp_path / "recos_v1.json", {"images/colour/a.jpg": ["red", "blue"], "b.jpg": ["three"]})

    found = recos.read(tmp_path, "v1")

    assert [facts["text"] for facts in found.captions.texts.values()] == ["red", "blue", "three"]
    assert [facts["subtask"] for facts in found.captions.texts.values()] == ["colour", "colour", None]
    with pytest.raises(UsageError, match=r"no recos_\*\.json of this version"):
        recos.read(tmp_path, "v0")


@pytest.mark.parametrize(
    ("table", "rows", "text"),
    [
        ("images", [{"image": "a"}, {"image": "a"}], "line 3: has the image 'a' a second time"),
        ("images", [{"image": "a", "version": "v9"}], "has the version 'v9'; there are: v0, v1, v2"),
        ("images", [{"image": "c"}], "line 2: describes 'a', which images do not name"),
        ("captions", [{"id": "t", "image": "a", "text": " "}], "line 2: has no text"),
        ("captions", [{"id": "t", "image": "a", "text": "x"}] * 2, "line 3: has the id 't' a second time"),
        ("captions", [{"id": "t", "image": "c", "text": "x"}], "has no captioned images of version v1"),
        ("captions", [{"id": "t", "text": "x"}], "has no column image; there are: id, text"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, table: str, rows: list[dict[str, str]], text: str) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / f"{table}.csv", rows)

    with pytest.raises(UsageError) as error:
        recos.read(data, "v1")

    assert text in str(error.value)


def test_a_version_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="versions v0, v1, v2, not 'v3'"):
        recos.read(worlds.recos(tmp_path), "v3")
