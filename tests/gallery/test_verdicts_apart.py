"""Verdicts wait for no index run, and the index of an earlier gallery is moved out of their file without loss."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eyespot.gallery.index_file import TABLES
from eyespot.gallery.index_tables import SCHEMA, VIEW
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.integrity import faults
from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.reading import reading
from eyespot.ledger.judgements import Judgements
from eyespot.storage import sqlite
from eyespot.storage.digests import read_digests, rewriting
from eyespot.types import Encoder, no_progress
from tests.gallery.test_any_damage import judged, overwrite_first_page, record
from tests.gallery.test_older_ledgers import TABLES as OLDEST
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import make_gallery


def make(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos" / "none.jpg").write_bytes(b"none")
    with Judgements(make_gallery(folder, 6) / "ledger.sqlite") as judgements:
        record(judgements, range(20))


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Six photos, one of them none, and twenty judgements."""
    return Path(shutil.copytree(made_once("verdicts apart", make) / "gallery", tmp_path / "gallery"))


@pytest.fixture
def earlier(gallery: Path) -> Path:
    """The same as eyespot left it until December 2026: all tables in one file."""
    with closing(sqlite3.connect(gallery / "ledger.sqlite", isolation_level=None)) as sql:
        sql.execute("ATTACH ? AS apart", (str(gallery / "index.sqlite"),))
        for view in ("files", "paths"):
            sql.execute(f"DROP VIEW {view}")
        sql.executescript(SCHEMA + VIEW)
        for (table,) in sql.execute("SELECT name FROM apart.sqlite_master WHERE type = 'table'").fetchall():
            sql.execute(f"INSERT INTO main.{table} SELECT * FROM apart.{table}")
    for place in gallery.glob("index.sqlite*"):
        place.unlink()
    with rewriting(gallery / "ledger", ["../ledger.sqlite", "../index.sqlite"]):
        pass
    return gallery


def held(place: Path) -> dict[str, list[Any]]:
    """The rows of every table of a file."""
    with closing(sqlite3.connect(place)) as sql:
        names = [name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(sql.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


def check_moved(gallery: Path, before: dict[str, list[Any]]) -> None:
    """Each table is in its file, and in that alone, with all its rows."""
    assert held(gallery / "index.sqlite") == {name: rows for name, rows in before.items() if name in TABLES}
    assert held(gallery / "ledger.sqlite") == {name: rows for name, rows in before.items() if name not in TABLES}
    assert not [*gallery.glob("*.part")]


def test_the_index_of_an_earlier_gallery_is_moved(earlier: Path, starter: Encoder) -> None:
    before, size = held(earlier / "ledger.sqlite"), (earlier / "ledger.sqlite").stat().st_size
    with reading(earlier) as ledger:
        counts, failures = ledger.counts(), ledger.failures()

    PictureIndex(earlier).close()
    check_moved(earlier, before)
    with reading(earlier) as ledger:
        assert (ledger.counts(), ledger.failures()) == (counts, failures) and counts == (6, 6) and len(failures) == 1
    assert {"../ledger.sqlite", "../index.sqlite"} <= read_digests(earlier / "ledger").keys()
    assert (earlier / "ledger.sqlite").stat().st_size < size

    summary = index(earlier, [], [starter])
    assert (summary.embedded, summary.pictures, len(judged(earlier))) == (0, 6, 20)
    assert faults(earlier, no_progress) == []


def test_an_index_that_is_there_wins(earlier: Path) -> None:
    """So it is after a kill between the copy and the drop."""
    shutil.copy(earlier / "ledger.sqlite", earlier / "copy")
    with closing(PictureIndex(earlier)) as ledger:
        ledger.sql.execute("UPDATE roots SET path = 'newer'")
    shutil.copy(earlier / "copy", earlier / "ledger.sqlite")
    with rewriting(earlier / "ledger", ["../ledger.sqlite"]):
        pass

    with reading(earlier) as known:
        assert [root.path for root in known.roots().values()] == ["newer"]
    with closing(PictureIndex(earlier)) as ledger:
        assert [root.path for root in ledger.roots().values()] == ["newer"]
    assert not held(earlier / "ledger.sqlite").keys() & TABLES


def test_a_damaged_ledger_of_an_earlier_gallery_is_repaired(earlier: Path, starter: Encoder) -> None:
    overwrite_first_page(earlier, "paths")

    with pytest.raises(sqlite.DamagedLedger, match=r"ledger\.sqlite cannot be used as a ledger"):
        index(earlier, [], [starter])
    assert not [*earlier.glob("index.sqlite*")]
    summary = index(earlier, [], [starter], Options(repair=True))

    assert (summary.pictures, summary.embedded, len(judged(earlier))) == (6, 0, 20)
    assert faults(earlier, no_progress) == []


FILES = {"open", "write", "fsync", "rename", "replace", "unlink", "remove", "utime"}
STEPS = FILES | {"connect", "execute", "executemany", "executescript", "close"}


def killed(moment: int, act: Callable[[], None]) -> bool:
    """Whether a process that does this was killed: before the step of this number, of all that change a file."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    left = moment

    def count(_frame: object, event: str, called: Any) -> None:
        nonlocal left
        left -= event == "c_call" and getattr(called, "__name__", "") in STEPS
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    try:
        act()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_killed_anywhere_in_the_move_nothing_is_lost(earlier: Path) -> None:
    before = held(earlier / "ledger.sqlite")
    shutil.copytree(earlier, earlier.with_name("copy"))
    states, moment = set(), 0
    while True:
        shutil.rmtree(earlier)
        shutil.copytree(earlier.with_name("copy"), earlier)
        if not killed(moment, lambda: PictureIndex(earlier).close()):
            break
        states.add(state(earlier))
        with reading(earlier) as known:
            assert (known.counts(), len(known.failures())) == ((6, 6), 1)
        PictureIndex(earlier).close()
        check_moved(earlier, before)
        assert judged(earlier) == [f"{image:03d}" for image in range(20)]
        moment += 1

    assert states == {"in the ledger", "half copied", "in both", "moved"} and moment > 50


def state(gallery: Path) -> str:
    """Where a kill left the tables of the index."""
    with closing(sqlite.connect_to_read(gallery / "ledger.sqlite")) as sql:
        in_ledger = bool(sqlite.table_names(sql) & {"spans"})
    if (gallery / "index.sqlite").exists():
        return "in both" if in_ledger else "moved"
    return "half copied" if [*gallery.glob("*.part")] else "in the ledger"


def test_a_copy_that_cannot_be_written_leaves_an_earlier_ledger_as_it_is(earlier: Path) -> None:
    before = held(earlier / "ledger.sqlite")
    (earlier / "index.sqlite.part").mkdir()  # nothing can be written there
    (earlier / "index.sqlite.part" / "file").touch()

    with pytest.raises(OSError, match=r"index\.sqlite\.part"):
        PictureIndex(earlier)

    assert held(earlier / "ledger.sqlite") == before and not (earlier / "index.sqlite").exists()


VERDICT = """
import sys
from pathlib import Path
from eyespot.ledger.judgements import Judgements
from tests.gallery.test_any_damage import record
with Judgements(Path(sys.argv[1]) / "ledger.sqlite") as judgements:
    record(judgements, range(20, 21))
"""


def test_a_verdict_waits_for_no_transaction_of_an_index_run(gallery: Path) -> None:
    """Another process records it while this one holds the index's write lock."""
    with closing(PictureIndex(gallery)) as ledger, ledger.transaction():
        ledger.sql.execute("UPDATE paths SET size = size + 1")
        subprocess.run([sys.executable, "-c", VERDICT, str(gallery)], check=True, timeout=sqlite.WAIT - 10)
        assert ledger.sql.in_transaction
        with closing(sqlite.connect_to_read(gallery / "ledger.sqlite")) as sql:
            assert sql.execute("SELECT count(*) FROM judgements WHERE image = '020'").fetchone() == (1,)


def test_a_run_waits_for_no_open_verdict_once_the_index_is_moved(gallery: Path, starter: Encoder) -> None:
    with closing(sqlite3.connect(gallery / "ledger.sqlite", isolation_level=None)) as sql:
        sql.execute("BEGIN IMMEDIATE")
        sql.execute("UPDATE judgements SET reason = 'open'")
        assert index(gallery, [], [starter]).pictures == 6
        sql.execute("COMMIT")

    with Judgements(gallery / "ledger.sqlite") as judgements:
        assert {row.judgement.verdict.reason for row in judgements.rows() if row.judgement.verdict} == {"open"}


@pytest.mark.parametrize("schema", [SCHEMA, OLDEST.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ")])
def test_an_earlier_eyespot_begins_no_second_index(gallery: Path, schema: str) -> None:
    """The statements with which those of November and December 2026 open a ledger to index."""
    assert {"../ledger.sqlite", "../index.sqlite"} <= read_digests(gallery / "ledger").keys()
    with raises(sqlite.DamagedLedger):
        sqlite.connect(gallery / "ledger.sqlite", schema).close()

    assert len(judged(gallery)) == 20


def test_room_that_a_kill_left_in_the_ledger_is_given_back_by_the_next_run(gallery: Path) -> None:
    place = gallery / "ledger.sqlite"
    size = place.stat().st_size
    with closing(sqlite.connect(place)) as sql:
        sql.execute(
            "CREATE TABLE dropped AS WITH rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n < 500)"
            " SELECT zeroblob(4000) FROM rows"
        )
        sql.execute("DROP TABLE dropped")
    assert place.stat().st_size > 10 * size

    PictureIndex(gallery).close()

    assert place.stat().st_size <= size
    assert len(judged(gallery)) == 20
