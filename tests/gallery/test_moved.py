"""A gallery that was moved, copied or restored is as good as one that stayed: what lies in it is named from there."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import eyespot
from eyespot.formats.imports.photo_facts import PhotoFacts, take_in
from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.taxonomy.name_index import NameIndex, add_names
from eyespot.ledger.photo_lists import PhotoLists
from eyespot.storage.copies import LEDGER
from tests.worlds import draw, index_gallery


def speak(gallery: Path, photos: Path, tag: str) -> None:
    """Tags and an import, given or corrected."""
    for name, column, files in (("tags-tag", "tag", ("0.jpg", "1.jpg")), ("detector-1", "detected", ("1.jpg",))):
        told = [PhotoFacts(str(photos / file), {column: tag}) for file in files]
        told += [PhotoFacts(str(gallery / "uploads" / "brought.jpg"), {column: tag})]
        done = take_in(gallery, told, name, gallery)
        assert not done.failed and not done.unknown
        index_gallery(gallery, done.path, encoders=())


def bring(gallery: Path, seed: int) -> None:
    """A photo that lies in the gallery itself, and what a table beside it says."""
    draw(gallery / "uploads" / "brought.jpg", seed)
    (gallery / "uploads" / "metadata.csv").write_text(f"file_name,who\nbrought.jpg,{seed}\n")
    index_gallery(gallery, gallery / "uploads")


def name_species(gallery: Path, name: str) -> None:
    (gallery.parent / "names.csv").write_text(f"scientific name,common name\nArdea cinerea,{name}\n")
    add_names(gallery, gallery.parent / "names.csv")


def make(gallery: Path, photos: Path) -> Path:
    index_gallery(gallery, photos, codes=True)
    bring(gallery, 50)
    speak(gallery, photos, "boat")
    name_species(gallery, "heron")
    with PhotoLists(gallery / LEDGER) as lists:
        lists.make("Lake", "ada", ["a"])
    return gallery


def correct(gallery: Path, photos: Path) -> Path:
    bring(gallery, 51)
    speak(gallery, photos, "bird")
    name_species(gallery, "grey heron")
    with PhotoLists(gallery / LEDGER) as lists:
        lists.make("River", "ada", ["b"])
    assert not index_gallery(gallery).failures
    return gallery


def contents(gallery: Path, photos: Path) -> dict[str, Any]:
    """All that a gallery says, where it and its photos lie aside."""
    view = eyespot.open(gallery).view
    rows = view.facts(list(range(int(view.starts[-1]))))
    facts = {
        str(row["path"]).replace(str(gallery), ".").replace(str(photos), "photos"): [
            row.get(n) for n in ("tag", "detected", "who")
        ]
        for row in rows
    }
    names = NameIndex.of(gallery)
    assert names is not None
    with PhotoLists(gallery / LEDGER) as lists:
        listed = {one.name for one in lists.all()}
    counts = index_gallery(gallery).found
    return {
        "facts": facts,
        "files": (counts.pictures, counts.paths),
        "names": names.taxa("grey heron"),
        "lists": listed,
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four photos, and in `kept` what was made of them in `made`."""
    folder = tmp_path_factory.mktemp("world")
    for at, seed in enumerate((80, 81, 0, 1)):
        draw(folder / "photos" / f"{at}.jpg", seed)
    make(folder / "made" / "g", folder / "photos")
    (folder / "made").rename(folder / "kept")
    return folder


def where_it_was_made(world: Path) -> Path:
    """That gallery as it was before all corrections."""
    shutil.rmtree(world / "made", ignore_errors=True)
    return Path(shutil.copytree(world / "kept", world / "made")) / "g"


@pytest.fixture(scope="module")
def stayed(world: Path) -> dict[str, Any]:
    """What is said after corrections by a gallery that stayed where it was."""
    return contents(correct(where_it_was_made(world), world / "photos"), world / "photos")


@pytest.mark.parametrize("way", ["moved", "copied", "restored", "by an older eyespot"])
def test_corrections_count_as_in_a_gallery_that_stayed(
    world: Path, tmp_path: Path, stayed: dict[str, Any], way: str
) -> None:
    photos, made, there = world / "photos", where_it_was_made(world), tmp_path / "there" / "g"
    if way == "by an older eyespot":
        with closing(PictureIndex(made)) as known:
            known.sql.execute(
                "UPDATE roots SET kind = replace(kind, 'facts', 'list'), path = ? || substr(path, 2)"
                " WHERE path LIKE './%'",
                (str(made),),
            )
    there.parent.mkdir()
    if way == "copied":
        shutil.copytree(made, there)
    else:
        made.rename(there)
    if way == "restored":  # a later state is lost
        shutil.copytree(there, tmp_path / "backup")
        speak(there, photos, "hut")
        shutil.rmtree(there)
        (tmp_path / "backup").rename(there)

    assert contents(correct(there, photos), photos) == stayed


def test_lists_of_facts_are_neither_files_nor_copies_and_follow_a_photo(tmp_path: Path, photos: Path) -> None:
    gallery = tmp_path / "g"
    index_gallery(gallery, photos)
    done = take_in(gallery, [PhotoFacts(str(photos / "photo1.jpg"), {"tag": "boat"})], "tags-tag", gallery)
    index_gallery(gallery, done.path, encoders=())
    os.rename(photos / "photo1.jpg", photos / "renamed.jpg")

    summary = index_gallery(gallery)

    assert (summary.found.pictures, summary.found.paths, summary.paths, summary.failures) == (9, 9, 9, [])
    view = eyespot.open(gallery).view
    assert [row["path"] for row in view.facts(range(9)) if row["tag"]] == [str(photos / "renamed.jpg")]
    (photos / "renamed.jpg").unlink()
    assert (index_gallery(gallery).pictures, index_gallery(gallery).failures) == (8, [])
