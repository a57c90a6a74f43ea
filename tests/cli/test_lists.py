"""`eyespot lists`: named lists at the terminal."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from eyespot.ledger.photo_lists import PhotoLists
from tests.cli.conftest import copy_of_sample_gallery
from tests.command import run_eyespot


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """The sample gallery with a list of two photos, and of one that has left it."""
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    result = run_eyespot("search", "fish", "-g", gallery, "-k", "2", "--json")
    ids = [one["id"] for one in json.loads(result.stdout)["items"]]
    with PhotoLists(gallery / "ledger.sqlite") as lists:
        lists.make("Two fish", "ada", [*ids, "f" * 32])
    return gallery


def test_lists_are_listed_and_shown(gallery: Path) -> None:
    lines = run_eyespot("lists", "list", "-g", gallery).stdout.split("\t")
    lists = json.loads(run_eyespot("lists", "list", "--gallery", gallery, "--json").stdout)
    paths = run_eyespot("lists", "show", "two FISH", "-g", gallery).stdout.splitlines()
    shown = json.loads(run_eyespot("lists", "show", lists[0]["list"], "--gallery", gallery, "--json").stdout)

    assert lines[1:] == ["3", "ada", "Two fish\n"]
    assert [one["path"] for one in shown] == paths and all(Path(path).is_file() for path in paths)
    assert len(paths) == 2


def test_a_list_is_exported(gallery: Path, tmp_path: Path) -> None:
    words = ("--copy", tmp_path / "copies", "--album", tmp_path / "links", "--csv", tmp_path / "fish.csv")
    done = run_eyespot("lists", "export", "Two fish", *words, "--all-columns", "--gallery", gallery)

    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "copies").iterdir())) == len(list((tmp_path / "links").iterdir())) == 2
    with (tmp_path / "fish.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["show", "no such list"], 4, "there is no list"),
        (["export", "Two fish"], 2, "say where to"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(gallery: Path, words: list[str], code: int, says: str) -> None:
    done = run_eyespot("lists", *words, "-g", gallery)

    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr


def test_a_gallery_without_lists_stays_as_it_is(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    (gallery / "ledger.sqlite").unlink(missing_ok=True)
    done = run_eyespot("lists", "list", "-g", gallery)

    assert done.returncode == 4 and not (gallery / "ledger.sqlite").exists()
