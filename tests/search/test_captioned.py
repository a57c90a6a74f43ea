"""What is said of a gallery's pictures, in files and columns: joined by id or name; what is not there is told."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eyespot
from eyespot import rooms
from eyespot.curate.captions import captioned as sentences
from eyespot.curate.captions import write
from eyespot.curate.templates import Templates
from eyespot.gallery.view import View
from eyespot.search.captioned import CaptionRows, captioned, said_in
from eyespot.search.embedding import embed
from eyespot.types import NothingFound, Query, UsageError
from tests.wording import raises
from tests.worlds import draw, index_gallery

NAMES = ["heron", "osprey", "owl", "", "gone"]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photos in two folders and shards of two; one has no name, one is gone, two are called alike."""
    folder = tmp_path_factory.mktemp("captioned")
    files = ["0.jpg", "1.jpg", "2.jpg", "deep/1.jpg", "4.jpg"]
    for at, file in enumerate(files):
        draw(folder / "photos" / file, at)
    rows = "".join(f"{file},{name}\n" for file, name in zip(files, NAMES, strict=True))
    (folder / "photos" / "metadata.csv").write_text("file_name,common_name\n" + rows)
    index_gallery(folder / "gallery", folder / "photos", shard_rows=2)
    (folder / "photos" / "4.jpg").unlink()
    index_gallery(folder / "gallery", shard_rows=2, forget=True)
    return folder / "gallery"


@pytest.fixture(scope="module")
def view(gallery: Path) -> View:
    return eyespot.open(gallery).view


def table(path: Path, *rows: tuple[str, ...]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def one(view: View, captions: object) -> CaptionRows:
    (part,) = said_in(view, str(captions))
    return part


def paths(view: View, captions: CaptionRows) -> list[str]:
    """The last part of the path of each picture that something is said of."""
    return [os.path.basename(facts["path"]) for facts in view.facts(captions.rows)]


@pytest.mark.parametrize("name", ["captions.parquet", "captions.csv"])
def test_captions_as_they_are_built_join_by_id(gallery: Path, view: View, tmp_path: Path, name: str) -> None:
    templates = Templates.over(["common_name"], {}, ["{a common_name}"])
    write(sentences(gallery, templates), tmp_path / name, templates)

    captions = one(view, tmp_path / name)

    assert dict(zip(paths(view, captions), captions.texts, strict=True)) == {
        "0.jpg": "a heron",
        "1.jpg": "an osprey",
        "2.jpg": "an owl",
    }
    assert captions.notes[0].startswith("3 of 3")


def test_what_is_not_there_is_counted(view: View, tmp_path: Path) -> None:
    rows = [("file_name", "caption"), ("2.jpg", "an owl"), ("2.jpg", "it sits"), ("x.jpg", "?"), ("4.jpg", "gone")]

    captions = one(view, table(tmp_path / "c.csv", *rows))

    assert (captions.texts, set(paths(view, captions))) == (["an owl", "it sits"], {"2.jpg"})
    assert captions.notes[0].startswith("2 of 4") and "'x.jpg'" in captions.notes[0]


def test_a_name_of_several_pictures_says_nothing_of_any(view: View, tmp_path: Path) -> None:
    captions = one(view, table(tmp_path / "c.csv", ("file_name", "caption"), ("0", "a heron"), ("1", "which?")))

    assert captions.texts == ["a heron"] and "'1'" in captions.notes[0]


def test_each_file_of_a_folder_joins_in_its_own_way(view: View, tmp_path: Path) -> None:
    for part, column, name in (("a", "id", view.facts([0])[0]["id"]), ("b", "file_name", "deep/1.jpg")):
        (tmp_path / part).mkdir()
        pq.write_table(pa.table({column: [name], "caption": [part]}), tmp_path / part / "captions.parquet")

    parts = list(said_in(view, f"{tmp_path}/"))

    assert [paths(view, part) for part in parts] == [["0.jpg"], ["1.jpg"]]


def test_texts_and_images_are_rows_of_the_pictures_that_are_there(gallery: Path, view: View, tmp_path: Path) -> None:
    encoder = rooms.load("encoders", "starter")
    parts = [one(view, "common_name"), one(view, table(tmp_path / "c.csv", ("path", "caption"), ("2.jpg", "an owl")))]

    found = captioned(view, encoder, parts)

    assert len(found.images) == len(found.ids) == 4 and len(found.texts) == len(found.of) == 4
    assert [found.ids[row] for row in found.of] == [view.facts([row])[0]["id"] for part in parts for row in part.rows]
    assert np.allclose(found.texts[-1:], encoder.encode_texts(["an owl"]), atol=1e-5)


def test_captions_of_other_pictures_only_are_no_pairs(view: View, tmp_path: Path) -> None:
    captions = one(view, table(tmp_path / "c.csv", ("file_name", "caption"), ("x.jpg", "?")))
    none = one(view, table(tmp_path / "none.csv", ("file_name", "caption")))

    assert none.texts == [] and str(tmp_path / "none.csv") in none.notes[0]
    with raises(NothingFound):
        captioned(view, rooms.load("encoders", "starter"), [captions])


@pytest.mark.parametrize("captions", ["nowhere.csv", "no/where", "colour", "without.csv", "unnamed.csv", "empty/"])
def test_what_is_wrong_is_told(view: View, tmp_path: Path, captions: str) -> None:
    (tmp_path / "empty").mkdir()
    table(tmp_path / "without.csv", ("id", "text"), ("1", "x"))
    table(tmp_path / "unnamed.csv", ("key", "caption"), ("1", "x"))

    with raises(NothingFound if captions == "empty/" else UsageError):
        list(said_in(view, captions if captions == "colour" else f"{tmp_path}/{captions}"))


def test_a_text_may_ask_with_a_picture(view: View, tmp_path: Path) -> None:
    """It is embedded as a search by both is; a picture that is not there takes its text along."""
    encoder = rooms.load("encoders", "starter")
    lines = [("file_name", "caption", "asked_with"), ("0.jpg", "what next?", "2.jpg"), ("0.jpg", "a heron", "")]
    captions = one(view, table(tmp_path / "asked.csv", *lines, ("2.jpg", "who?", "nowhere.jpg")))

    found = captioned(view, encoder, [captions])

    asking = Path(view.facts([captions.asking[0]])[0]["path"])
    wanted = embed([Query.composed(asking, "what next?"), Query.words("a heron")], encoder)
    assert (asking.name, captions.texts, captions.asking[1]) == ("2.jpg", ["what next?", "a heron"], -1)
    assert np.abs(found.texts - wanted).max() < 1e-6
    assert captions.notes[1].startswith("1 texts")
