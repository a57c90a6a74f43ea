"""Judged images are rows of a gallery by one way for all, and a run gets their names."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eyespot
from eyespot import rooms
from eyespot.curate.captions import captioned as sentences, write
from eyespot.curate.templates import Templates
from eyespot.gallery.view import View
from eyespot.metrics import evaluate
from eyespot.search.captioned import CaptionRows, captioned, said_in
from eyespot.search.embedding import embed
from eyespot.search.matching import RowMatching, matched, renamed
from eyespot.types import NothingFound, Qrels, Query, RankedImage, Run, UsageError
from tests.wording import raises
from tests.worlds import draw, index_gallery

FACTS = """file_name,number,mixed,Place
a/gull.jpg,17,x,3.5
a/heron.v2.jpg,18,7,2
b/ibis.jpg,19,7,
e/gone.jpg,20,z,
"""
PATHS = ["a/gull.jpg", "a/heron.v2.jpg", "b/ibis.jpg", "c/gull.jpg", "c/teal.png"]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Five pictures in shards of two; d/copy.jpg is c/teal.png once more, and e/gone.jpg is gone again."""
    folder = tmp_path_factory.mktemp("matching")
    for seed, path in enumerate([*PATHS, "e/gone.jpg"]):
        draw(folder / "photos" / path, seed)
    (folder / "photos" / "d").mkdir()
    shutil.copy(folder / "photos" / "c/teal.png", folder / "photos" / "d/copy.jpg")
    (folder / "photos" / "metadata.csv").write_text(FACTS)
    index_gallery(folder / "gallery", folder / "photos", shard_rows=2)
    (folder / "photos" / "e/gone.jpg").unlink()
    index_gallery(folder / "gallery", shard_rows=2, forget=True)
    return eyespot.open(folder / "gallery").view


def rows(matching: RowMatching) -> dict[str, int]:
    return dict(zip(matching.names, matching.rows.tolist(), strict=True))


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("path", {"c/gull.jpg": 3, "a/gull.jpg": 0, "b/ibis.jpg": 2}),
        ("file_name", {"heron.v2.jpg": 1, "teal.png": 4, "copy.jpg": 4}),
        ("file_stem", {"heron.v2": 1, "teal": 4, "copy": 4}),
        ("path_end", {"photos/c/gull.jpg": 3, "photos/a/gull.jpg": 0, "Photos/B/ibis.JPG": 2, "photos/d/copy.jpg": 4}),
        ("id", {}),
    ],
)
def test_names_are_looked_up_in_the_way_that_finds_most(view: View, way: str, names: dict[str, int]) -> None:
    names = names or {facts["id"]: row for row, facts in enumerate(view.facts(range(5)))}

    matching = matched(view, names)

    assert (matching.way, rows(matching), matching.unmatched, matching.ambiguous) == (way, names, [], [])
    assert matching.ids == [view.facts([row])[0]["id"] for row in names.values()]
    assert matched(View(view.gallery, view.stem, [], []), names).unmatched == [*names]


def test_one_way_holds_for_all_names(view: View) -> None:
    matching = matched(view, ["a/gull.jpg", "b/ibis.jpg", "teal.png"])

    assert (matching.way, matching.unmatched) == ("path", ["teal.png"])


def test_of_several_rows_under_one_name_the_first_counts_and_it_is_told(view: View) -> None:
    matching = matched(view, ["gull.jpg", "ibis.jpg"])

    assert (rows(matching), matching.ambiguous) == ({"gull.jpg": 0, "ibis.jpg": 2}, ["gull.jpg"])
    assert "1 (such as 'gull.jpg')" in matching.notes[1]


def test_a_picture_that_lies_twice_in_the_gallery_has_both_names_and_is_not_ambiguous(view: View) -> None:
    matching = matched(view, ["c/teal.png", "d/copy.jpg"])

    assert (rows(matching), matching.ambiguous) == ({"c/teal.png": 4, "d/copy.jpg": 4}, [])


def test_a_picture_that_is_gone_is_not_matched(view: View) -> None:
    matching = matched(view, ["e/gone.jpg", "b/ibis.jpg"])

    assert (matching.unmatched, matching.ids[0]) == (["e/gone.jpg"], None)
    assert matched(view, ["20"], "number").unmatched == ["20"]


def test_what_is_nowhere_is_listed_in_its_order_and_counted(view: View) -> None:
    matching = matched(view, ["z.jpg", "b/ibis.jpg", "", "half \ud800", "z.jpg", "z/gull.jpg"])

    assert matching.unmatched == ["z.jpg", "", "half \ud800", "z/gull.jpg"]
    assert "1 of 5" in matching.notes[0] and "'z.jpg'" in matching.notes[0]
    assert matched(view, []).names == []


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("number", {"19": 2, "17": 0, "017": -1, "": -1, "None": -1}),
        ("NUMBER", {"18": 1}),
        ("mixed", {"x": 0, "7": 1}),
        ("place", {"3.5": 0}),
        ("file_stem", {"ibis": 2, "b/ibis.jpg": -1}),
    ],
)
def test_a_column_is_compared_as_text_and_used_alone(view: View, column: str, names: dict[str, int]) -> None:
    assert rows(matched(view, names, column)) == names


@pytest.mark.parametrize("column", ["species", "paths", "roots"])
def test_a_column_that_is_not_there_is_refused_with_those_that_are(view: View, column: str) -> None:
    with raises(UsageError):
        matched(view, ["17"], column)


def test_hits_are_named_and_those_without_a_name_keep_their_rank(view: View) -> None:
    ids = [facts["id"] for facts in view.facts(range(5))]
    matching = matched(view, ["c/teal.png", "d/copy.jpg", "b/ibis.jpg", "z.jpg"])
    run = Run({"q": [(ids[0], 0.9), (ids[4], 0.8), (ids[2], 0.7)], "none": []})

    named = renamed(run, matching)

    assert named["q"] == [
        RankedImage(f"gallery:{ids[0]}", 0.9),
        RankedImage("c/teal.png", 0.8),
        RankedImage("d/copy.jpg", 0.8),
        RankedImage("b/ibis.jpg", 0.7),
    ]
    assert named["none"] == []
    assert evaluate(named, Qrels({"q": {"b/ibis.jpg": 1}}), ["RR"]).means["RR"] == 1 / 4


def test_facts_header_and_notes_go_along_under_the_new_names(view: View) -> None:
    first, second = view.facts([0, 1])
    run = Run({"q": [(first["id"], 0.9), (second["id"], 0.8)]})
    run.facts, run.header, run.notes = {first["id"]: first, second["id"]: second}, {"exact": True}, ["a note"]

    named = renamed(run, matched(view, ["17"], "number"))

    assert named.facts == {"17": first, f"gallery:{second['id']}": second}
    assert (named.header, named.notes) == ({"exact": True, "matched_by": "number"}, ["a note"])


# -- what is said of a gallery's pictures, in files and columns ---------------------------------------------------


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photos in two folders and shards of two; one has no name, one is gone, two are called alike."""
    folder = tmp_path_factory.mktemp("captioned")
    files = ["0.jpg", "1.jpg", "2.jpg", "deep/1.jpg", "4.jpg"]
    for at, file in enumerate(files):
        draw(folder / "photos" / file, at)
    rows = "".join(f"{file},{name}\n" for file, name in zip(files, ["heron", "osprey", "owl", "", "gone"], strict=True))
    (folder / "photos" / "metadata.csv").write_text("file_name,common_name\n" + rows)
    index_gallery(folder / "gallery", folder / "photos", shard_rows=2)
    (folder / "photos" / "4.jpg").unlink()
    index_gallery(folder / "gallery", shard_rows=2, forget=True)
    return folder / "gallery"


@pytest.fixture(scope="module")
def captioned_view(gallery: Path) -> View:
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
def test_captions_as_they_are_built_join_by_id(gallery: Path, captioned_view: View, tmp_path: Path, name: str) -> None:
    templates = Templates.over(["common_name"], {}, ["{a common_name}"])
    write(sentences(gallery, templates), tmp_path / name, templates)

    captions = one(captioned_view, tmp_path / name)

    assert dict(zip(paths(captioned_view, captions), captions.texts, strict=True)) == {
        "0.jpg": "a heron",
        "1.jpg": "an osprey",
        "2.jpg": "an owl",
    }
    assert captions.notes[0].startswith("3 of 3")


def test_what_is_not_there_is_counted(captioned_view: View, tmp_path: Path) -> None:
    rows = [("file_name", "caption"), ("2.jpg", "an owl"), ("2.jpg", "it sits"), ("x.jpg", "?"), ("4.jpg", "gone")]

    captions = one(captioned_view, table(tmp_path / "c.csv", *rows))

    assert (captions.texts, set(paths(captioned_view, captions))) == (["an owl", "it sits"], {"2.jpg"})
    assert captions.notes[0].startswith("2 of 4") and "'x.jpg'" in captions.notes[0]


def test_a_name_of_several_pictures_says_nothing_of_any(captioned_view: View, tmp_path: Path) -> None:
    captions = one(
        captioned_view, table(tmp_path / "c.csv", ("file_name", "caption"), ("0", "a heron"), ("1", "which?"))
    )

    assert captions.texts == ["a heron"] and "'1'" in captions.notes[0]


def test_each_file_of_a_folder_joins_in_its_own_way(captioned_view: View, tmp_path: Path) -> None:
    first = captioned_view.facts([0])[0]["id"]
    for part, column, name in (("a", "id", first), ("b", "file_name", "photos/deep/1.jpg")):
        (tmp_path / part).mkdir()
        pq.write_table(pa.table({column: [name], "caption": [part]}), tmp_path / part / "captions.parquet")

    parts = list(said_in(captioned_view, f"{tmp_path}/"))

    assert [paths(captioned_view, part) for part in parts] == [["0.jpg"], ["1.jpg"]]


def test_texts_and_images_are_rows_of_pictures(gallery: Path, captioned_view: View, tmp_path: Path) -> None:
    encoder = rooms.load("encoders", "starter")
    parts = [
        one(captioned_view, "common_name"),
        one(captioned_view, table(tmp_path / "c.csv", ("path", "caption"), ("2.jpg", "an owl"))),
    ]

    texts, images, of, ids = captioned(captioned_view, encoder, parts)

    assert len(images) == len(ids) == 4 and len(texts) == len(of) == 4
    assert [ids[row] for row in of] == [captioned_view.facts([row])[0]["id"] for part in parts for row in part.rows]
    assert np.allclose(texts[-1:], encoder.encode_texts(["an owl"]), atol=1e-5)


def test_captions_of_other_pictures_only_are_no_pairs(captioned_view: View, tmp_path: Path) -> None:
    captions = one(captioned_view, table(tmp_path / "c.csv", ("file_name", "caption"), ("x.jpg", "?")))
    none = one(captioned_view, table(tmp_path / "none.csv", ("file_name", "caption")))

    assert none.texts == [] and str(tmp_path / "none.csv") in none.notes[0]
    with raises(NothingFound):
        captioned(captioned_view, rooms.load("encoders", "starter"), [captions])


@pytest.mark.parametrize("captions", ["nowhere.csv", "no/where", "colour", "without.csv", "unnamed.csv", "empty/"])
def test_what_is_wrong_is_told(captioned_view: View, tmp_path: Path, captions: str) -> None:
    (tmp_path / "empty").mkdir()
    table(tmp_path / "without.csv", ("id", "text"), ("1", "x"))
    table(tmp_path / "unnamed.csv", ("key", "caption"), ("1", "x"))

    with raises(NothingFound if captions == "empty/" else UsageError):
        list(said_in(captioned_view, captions if captions == "colour" else f"{tmp_path}/{captions}"))


def test_a_text_may_ask_with_a_picture(captioned_view: View, tmp_path: Path) -> None:
    """It is embedded as a search by both is; a picture that is not there takes its text along."""
    encoder = rooms.load("encoders", "starter")
    lines = [("file_name", "caption", "asked_with"), ("0.jpg", "what next?", "2.jpg"), ("0.jpg", "a heron", "")]
    captions = one(captioned_view, table(tmp_path / "asked.csv", *lines, ("2.jpg", "who?", "nowhere.jpg")))

    texts, *_ = captioned(captioned_view, encoder, [captions])

    asking = Path(captioned_view.facts([captions.asking[0]])[0]["path"])
    wanted = embed([Query.composed(asking, "what next?"), Query.words("a heron")], encoder)
    assert (asking.name, captions.texts, captions.asking[1]) == ("2.jpg", ["what next?", "a heron"], -1)
    assert np.abs(texts - wanted).max() < 1e-6
    assert captions.notes[1].endswith(": 1")
