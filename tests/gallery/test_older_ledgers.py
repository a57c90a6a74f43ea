"""Ledgers of an older eyespot are taken over in one step: a kill at any moment loses nothing."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.reading import reading
from eyespot.gallery.texts import failures, unread

# As eyespot wrote it until November 2026
TABLES = """
CREATE TABLE roots(number INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT);
CREATE TABLE files(root INTEGER, path TEXT, size INTEGER, mtime INTEGER, place INTEGER, id TEXT, failed TEXT,
    PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE INDEX files_id ON files(id);
CREATE TABLE items(id TEXT PRIMARY KEY, shard INTEGER, row INTEGER, measured TEXT) WITHOUT ROWID;
CREATE INDEX items_shard ON items(shard, row);
CREATE TABLE labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE texts(id TEXT PRIMARY KEY, facts TEXT, failed TEXT) WITHOUT ROWID;
CREATE TABLE columns(name TEXT PRIMARY KEY, kind TEXT) WITHOUT ROWID;
CREATE TABLE problems(root INTEGER, path TEXT, reason TEXT);
CREATE TABLE plan(shard INTEGER, position INTEGER, root INTEGER, path TEXT, size INTEGER, mtime INTEGER,
    place INTEGER, PRIMARY KEY(shard, position)) WITHOUT ROWID;
CREATE TABLE stale(shard INTEGER PRIMARY KEY);
CREATE TABLE seen(root INTEGER, path TEXT, size INTEGER, mtime INTEGER, place INTEGER, PRIMARY KEY(root, path))
    WITHOUT ROWID;
CREATE TABLE seen_labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE imported(shard INTEGER PRIMARY KEY, root INTEGER, rows INTEGER, format TEXT, space TEXT,
    source TEXT UNIQUE);
"""
SHARD = 1000
MEASURED = [
    {"width": 40, "height": 30, "format": "JPEG"},
    {
        "width": 40,
        "height": 30,
        "taken": "2015-06-01T12:00:00",
        "latitude": 1.5,
        "longitude": -2.25,
        "camera": "N",
        "format": "PNG",
    },
    {
        "width": 1,
        "height": 1,
        "taken": "2015-06-01T12:00:00.250000",
        "embedded_title": "a \U0001f600 b",
        "format": "GIF",
    },
    {"width": 1, "height": 1, "taken": "0001-01-01T00:00:00", "video_length": 2.5},
]


def picture(number: int) -> tuple[str, dict[str, object]]:
    return hashlib.sha256(b"%d" % number).hexdigest()[:32], MEASURED[number % len(MEASURED)]


def older(place: Path, count: int) -> Path:
    """A ledger with that many pictures, each tenth at a second path, one file that failed and a video."""
    with closing(sqlite3.connect(place)) as sql, sql:
        sql.executescript(TABLES)
        sql.execute("INSERT INTO roots VALUES (3, '/photos', 'folder')")
        for number in range(count):
            id, measured = picture(number)
            values = (id, 5 * (number // SHARD), number % SHARD, json.dumps(measured))
            sql.execute("INSERT INTO items VALUES (?, ?, ?, ?)", values)
            for path in (f"{number % 7}/{number}.jpg", f"twin{number}.jpg")[: 1 + (number % 10 == 0)]:
                sql.execute("INSERT INTO files VALUES (3, ?, ?, ?, -1, ?, NULL)", (path, number, number << 32, id))
        sql.execute("INSERT INTO files VALUES (3, 'torn.jpg', 1, 2, -1, NULL, 'torn')")
        sql.execute("INSERT INTO files VALUES (3, 'clip.mp4', 1, 2, -2, ?, NULL)", ("f" * 32,))
        sql.execute("INSERT INTO labels VALUES (3, '1/1.jpg', '{\"legs\": 2}')")
        sql.execute("INSERT INTO columns VALUES ('legs', 'int')")
        sql.execute('INSERT INTO texts VALUES (?, \'{"text_read_by": "x"}\', NULL)', (picture(1)[0],))
        sql.execute("INSERT INTO texts VALUES (?, '{}', 'blurred')", (picture(2)[0],))
    return place


def check(ledger: PictureIndex, count: int) -> None:
    """All is there that `older` wrote."""
    rows = [row for shard in ledger.shard_rows() for row in ledger.rows_of(shard)]

    assert [(row.id, row.measured) for row in rows] == [picture(number) for number in range(count)]
    assert rows[0].paths == ["0/0.jpg", "twin0.jpg"] and rows[0].roots == [3, 3]
    assert (rows[1].paths, rows[1].size, rows[1].mtime) == (["1/1.jpg"], 1, 1 << 32)
    assert rows[1].labels == {"legs": 2, "text_read_by": "x"} and not rows[2].labels
    assert ledger.shard_rows() == {5 * shard: SHARD for shard in range(count // SHARD)}
    check_answers(ledger, count)


def check_answers(ledger: PictureIndex, count: int) -> None:
    """What is also asked of a ledger that nobody has taken over yet."""
    assert ledger.counts() == (count, count + count // 10)
    assert [(failure.path, failure.reason) for failure in ledger.failures()] == [("torn.jpg", "torn")]
    assert [failure.path for failure in failures(ledger)] == ["2/2.jpg"]
    known = ledger.known_file(3, "clip.mp4")
    assert known is not None and known[1:] == (1, 2, -2) and ledger.known_file(3, "clip") is None
    assert sum(ledger.shard_rows().values()) == count


def test_it_is_taken_over_with_all_it_knows(tmp_path: Path) -> None:
    place = older(tmp_path / "ledger.sqlite", 2000)
    before = place.stat().st_size
    with reading(tmp_path) as known:
        check_answers(known, 2000)

    for _ in range(2):
        with closing(PictureIndex(tmp_path)) as ledger:
            check(ledger, 2000)
            assert len(unread(ledger, again=True)) == 1999
    with reading(tmp_path) as known:
        check_answers(known, 2000)

    assert (tmp_path / "index.sqlite").stat().st_size + place.stat().st_size < 0.6 * before


@pytest.mark.slow
def test_killed_while_it_is_taken_over_nothing_is_lost(tmp_path: Path) -> None:
    """Ten kills that hit: after each the ledger answers as before, and the next run takes it over."""
    count, moment, hits = 20_000, random.Random(22), 0
    kept = older(tmp_path / "kept.sqlite", count)
    place = tmp_path / "ledger.sqlite"
    seconds = 0.0
    for trial in range(60):
        if hits == 10:
            break
        for leftover in (*tmp_path.glob("ledger.sqlite*"), *tmp_path.glob("index.sqlite*")):
            leftover.unlink()
        shutil.copy(kept, place)
        begun, process = start(tmp_path)
        if trial:
            time.sleep(moment.uniform(0, seconds))
            hits += process.poll() is None
            process.kill()
        process.communicate()
        seconds = seconds or time.monotonic() - begun
        with reading(tmp_path) as known:
            check_answers(known, count)
        with closing(PictureIndex(tmp_path)) as ledger:
            check(ledger, count)

    assert hits == 10


def start(gallery: Path) -> tuple[float, subprocess.Popen[bytes]]:
    """Take a ledger over in another process, from the moment on at which it begins."""
    code = (
        "import sys; from pathlib import Path; from eyespot.gallery.picture_index import PictureIndex;"
        "print(flush=True); PictureIndex(Path(sys.argv[1])).close()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(gallery)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return time.monotonic(), process
