"""Names of files in tables, lists and lines: matched by their characters, then composed, then in any case, and said."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import pytest

from eyespot.formats.imports.photo_facts import PhotoFacts, take_in
from eyespot.gallery.reading import reading
from eyespot.search.collection import Collection
from eyespot.types import UsageError
from tests.worlds import draw, draw_photos, index_gallery


def test_facts_of_other_programs_find_photos_in_another_spelling(tmp_path: Path) -> None:
    photos, nfd = tmp_path / "photos", unicodedata.normalize("NFD", "Zürich.jpg")
    for at, name in enumerate((f"a/{nfd}", "a/UPPER.JPG", "a/two.jpg", "b/two.jpg")):
        draw(photos / name, at)
    index_gallery(tmp_path / "gallery", photos)
    names = {"a/Zürich.jpg": (), "a\\upper.jpg": (), "x/TWO.jpg": ("b/TWO.jpg",), "two.jpg": ("two.jpg",)}
    rows = [PhotoFacts(name, {"species": name}, elsewhere=ends) for name, ends in names.items()]
    done = take_in(tmp_path / "gallery", rows, "facts", photos)
    assert done.known == 3 and [file for file, _ in done.failed] == ["two.jpg"]
    paths = [f"{photos}/a/{nfd}", f"{photos}/a/UPPER.JPG", f"{photos}/b/two.jpg"]
    assert done.respelled == list(zip([*names][:3], paths, strict=True))


def test_names_in_labels_are_matched_by_another_spelling_where_one_picture_fits(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos", 4)
    names = [unicodedata.normalize("NFD", "Zürich.jpg"), "Café.jpg", "UPPER.JPG", "two.jpg", "Two.jpg", "IMG_0007.jpg"]
    drawn = sorted(photos.rglob("*.jpg"))
    for name in names:
        shutil.copy(drawn[0], photos / name)
    rows = ["Zürich.jpg", unicodedata.normalize("NFD", "Café.jpg"), "upper.jpg", "TWO.jpg", "Cafe.jpg", "IMG_0008.jpg"]
    lines = "".join(f"{name},{number}\n" for number, name in enumerate(rows))
    (photos / "metadata.csv").write_text("file_name,number\n" + lines, encoding="utf-8")

    for _ in range(2):
        done = index_gallery(tmp_path / "gallery", photos)
        with reading(tmp_path / "gallery") as known:
            labels = known.sql.execute("SELECT path, facts FROM labels").fetchall()
        matched = {name: {"number": str(number)} for number, name in enumerate(names[:3])}
        assert {path: json.loads(facts) for path, facts in labels} == matched | {
            "TWO.jpg": {"number": "3"},
            "Cafe.jpg": {"number": "4"},
            "IMG_0008.jpg": {"number": "5"},
        }
        assert [(failure.path, failure.reason.partition("; ")[2]) for failure in done.failures] == [
            ("Cafe.jpg", "did you mean Café.jpg?"),
            ("IMG_0008.jpg", ""),  # another photo of the same camera
            ("TWO.jpg", "2 are spelled like it, such as Two.jpg"),
        ]
        assert len([note for note in done.notes if "3 labels and sidecars match by another spelling" in note]) == 1
        assert sorted(done.found.respelled) == sorted(zip(rows[:3], names[:3], strict=True))


def test_photos_of_a_line_are_named_by_id_path_or_file_name_in_any_spelling(tmp_path: Path) -> None:
    photos, nfd = draw_photos(tmp_path / "photos", 2), unicodedata.normalize("NFD", "Zürich.jpg")
    for at, name in enumerate((nfd, "a/x.jpg", "b/x.jpg")):
        draw(photos / name, 10 + at)
    index_gallery(tmp_path / "gallery", photos)
    collection = Collection(tmp_path / "gallery")
    view = collection.view
    zurich = str(photos / nfd)
    rows, respelled = view.rows_named(["0.JPG", "ZÜRICH.jpg", f"{photos}/b/x.jpg", "a/x.jpg", view.facts([1])[0]["id"]])
    found = [Path(facts["path"]).relative_to(photos).as_posix() for facts in view.facts(rows)]
    assert found[:4] == ["0.jpg", nfd, "b/x.jpg", "a/x.jpg"] and rows[4] == 1
    assert respelled == [("0.JPG", str(photos / "0.jpg")), ("ZÜRICH.jpg", zurich)]
    (note,) = [note for note in collection.search("a disc", yes=["zürich.jpg"]).notes if "moved by" in note]
    assert f"{zurich} for zürich.jpg" in note
    assert collection.search(str(photos / "zürich.jpg"))
    for name, why in (("x.jpg", "names 2 pictures"), ("y.jpg", "has no picture 'y.jpg'")):
        with pytest.raises(UsageError, match=why):
            view.rows_named([name])


def test_a_list_names_pictures_in_another_spelling(tmp_path: Path) -> None:
    folder = unicodedata.normalize("NFD", "Zürich")
    photos = draw_photos(tmp_path / folder, 1)
    shutil.copy(photos / "0.jpg", photos / "Two.JPG")
    listed = tmp_path / "list.csv"
    listed.write_text("file_name,number\nZürich/0.jpg,7\nZÜRICH/two.jpg,8\nZürich/3.jpg,9\n", encoding="utf-8")
    done = index_gallery(tmp_path / "gallery", listed)
    assert [failure.path for failure in done.failures] == ["Zürich/3.jpg"]
    with reading(tmp_path / "gallery") as known:
        labels = dict(known.sql.execute("SELECT path, facts FROM labels").fetchall())
    assert {name: json.loads(facts)["number"] for name, facts in labels.items() if name[-5] != "3"} == {
        f"{folder}/0.jpg": "7",
        f"{folder}/Two.JPG": "8",
    }
    assert done.found.respelled == [("Zürich/0.jpg", f"{folder}/0.jpg"), ("ZÜRICH/two.jpg", f"{folder}/Two.JPG")]
