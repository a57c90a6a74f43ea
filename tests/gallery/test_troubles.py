"""What a store says of an error: a full disk, a missing right, a read-only disk, a lock and damage, each for itself."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery.integrity import faults
from eyespot.gallery.reading import reading
from eyespot.gallery.remote.publishing import publish
from eyespot.gallery.segments import compact
from eyespot.gallery.taxonomy.name_index import NAME, NameIndex, add_names
from eyespot.ledger.judgements import Judgements
from eyespot.ledger.photo_lists import PhotoLists
from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.copies import INDEX, LEDGER
from eyespot.types import EyespotError, Judgement, Query, Term, Verdict, no_progress
from tests.command import run_eyespot
from tests.worlds import draw, index_gallery, make_gallery
from tests.worlds.clips import clip

FULL = "make room and run the same line again"
THROWS_AWAY = ("move it away", "delete", "--repair")


def _index(gallery: Path) -> None:
    index_gallery(gallery, draw(gallery.parent / "more" / "new.jpg", 70).parent)


def _names(gallery: Path) -> None:
    (gallery.parent / "names.csv").write_text("scientific name,common name\nArdea cinerea,heron\n")
    add_names(gallery, gallery.parent / "names.csv")


def _import(gallery: Path) -> None:
    np.save(gallery.parent / "vectors.npy", np.eye(4, dtype=np.float32))
    take_in(gallery, npy.source([gallery.parent / "vectors.npy"]), "other", copy=True)


STORES: dict[str, Callable[[Path], object]] = {
    "index": _index,
    "names": _names,
    "segments": lambda gallery: compact(gallery, 1 << 20),
    "an address": lambda gallery: publish(gallery, f"file://{gallery.parent}/there"),
    "import": _import,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gallery = make_gallery(tmp_path_factory.mktemp("made"), 6, shard_rows=2)
    _names(gallery)
    return gallery


@pytest.mark.parametrize("store", STORES)
def test_a_store_that_cannot_be_written_says_why(made: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    for number, words in {
        errno.ENOSPC: FULL,
        errno.EDQUOT: FULL,
        errno.EACCES: "give yourself the right",
        errno.EROFS: "its disk may only be read",
        errno.EIO: "is sound|check the address",
    }.items():

        def fail(_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(EyespotError, match=words) as caught:
                STORES[store](made)
        assert os.strerror(number).lower() in str(caught.value).lower()
        assert not any(words in str(caught.value) for words in THROWS_AWAY)


VERBS = {
    "words": ["index", "-g"],
    "codes": ["index", "--codes", "-g"],
    "groups": ["index", "-g"],
    "video frames": ["index", "clips", "-g"],
    "descriptors": ["describe", "-g"],
    "map": ["map", "-g"],
    "tags": ["tag", "bird, boat", "-g"],
    "copies of hits": ["search", "a bird", "--copy", "hits", "-g"],
    "a page": ["search", "a bird", "--html", "hits.html", "-g"],
}
MADE = {"words": "*/words.sqlite", "groups": "*/links.i64"}  # removed first, or there is nothing to write
NEEDS = {"descriptors": ("cv2",), "map": ("openTSNE",), "video frames": ("av",)}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_a_full_disk_says_so_and_goes_on_when_there_is_room(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    for package in NEEDS.get(verb, ()):
        pytest.importorskip(package)
    gallery = Path(shutil.copytree(made, tmp_path / "gallery"))
    if verb == "video frames":
        clip(tmp_path / "clips" / "a.mp4", [Image.new("RGB", (90, 90), colour) for colour in ("red", "blue")])
    for part in (gallery / "shards").glob(MADE.get(verb, "nothing")):
        part.unlink()

    def fail(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        full = run_eyespot(*VERBS[verb], gallery, cwd=tmp_path)
    assert FULL in full.stderr and "no space left on device" in full.stderr and "stumbled" not in full.stderr
    assert run_eyespot("search", "a bird", "-g", gallery).returncode == 0
    done = run_eyespot(*VERBS[verb], gallery, cwd=tmp_path)
    assert done.returncode == 0 and FULL not in done.stderr and faults(gallery, no_progress) == []


def _lists(place: Path) -> None:
    with PhotoLists(place) as lists:
        lists.make(f"{len(lists.all())}", "ada", map(str, range(2000)))


def _verdicts(place: Path) -> None:
    query = Query("q", (Term(1.0, text="stripes"),))
    with Judgements(place) as judgements:
        digest, start = judgements.enter([query])[query], len([*judgements.rows()])
        many = range(start, start + 2000)
        judgements.record(Judgement(digest, str(n), "judge", "prompt", Verdict(grade=1)) for n in many)


@pytest.mark.parametrize("write", [_lists, _verdicts])
def test_a_ledger_without_room_says_so_and_goes_on_when_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    place, connect = tmp_path / "some.sqlite", sqlite3.connect
    write(place)

    def connect_full(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_full)
        with pytest.raises(EyespotError, match=f"no space left on device.*{FULL}"):
            write(place)
    write(place)


SAID = {
    "SQLITE_FULL": FULL,
    "SQLITE_IOERR_SHMSIZE": FULL,  # no room for its list of the log's pages: "disk I/O error", says SQLite
    "SQLITE_READONLY_DIRECTORY": "give yourself the right",
    "SQLITE_PERM": "give yourself the right",
    "SQLITE_BUSY_SNAPSHOT": "end the program that uses it",
    "SQLITE_LOCKED": "end the program that uses it",
    "SQLITE_CORRUPT_INDEX": "put it back from a copy",
    "SQLITE_NOTADB": "put it back from a copy",
    "SQLITE_IOERR_READ": "check that it is sound",
}


@pytest.mark.parametrize("code", SAID)
def test_each_error_of_sqlite_has_its_way_out(code: str) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorname = code
    assert SAID[code] in trouble(error)


OPENED: dict[str, Callable[[Path], object]] = {
    LEDGER: lambda place: PhotoLists(place).make("Lake", "ada", []),
    INDEX: lambda place: index_gallery(place.parent),
    "team.sqlite": lambda place: PhotoLists(place).make("Lake", "ada", []),
    "judged.sqlite": lambda place: Judgements(place),
    NAME: lambda place: NameIndex(place).files,
}


CASES = [(name, is_lock) for name in OPENED for is_lock in (True, False) if name != NAME or not is_lock]


@pytest.mark.parametrize(("name", "is_lock"), CASES)
def test_a_locked_file_is_not_damaged(made: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_lock: bool) -> None:
    place = made / name
    before = place.read_bytes() if place.exists() else None
    monkeypatch.setattr(sqlite, "WAIT", 0.01)
    with closing(sqlite3.connect(place, isolation_level=None)) as sql:
        if is_lock:
            sql.execute("BEGIN EXCLUSIVE")
        else:
            place.write_bytes(b"no database" * 500)
        with pytest.raises(EyespotError) as caught:
            OPENED[name](place)
    place.unlink()
    if before is not None:
        place.write_bytes(before)

    assert any(words in str(caught.value) for words in THROWS_AWAY) is not is_lock
    assert ("end the program that uses it" in str(caught.value)) is is_lock
    with reading(made) as index:
        assert index.failures() == []


@pytest.mark.parametrize("there", [True, False])
def test_whoever_lacks_the_right_to_a_file_that_is_there_is_not_sent_elsewhere(tmp_path: Path, there: bool) -> None:
    file = tmp_path / "ledger.sqlite"
    if there:
        file.touch()
    (tmp_path / "ledger").mkdir()
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "ledger" / ".." / file.name))

    way_out = trouble(error, elsewhere="another place")

    assert ("another place" in way_out) is not there
    assert (str(file) in way_out) is there
