"""Verdicts wait for no index run."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from eyespot.gallery.indexing import index
from eyespot.gallery.picture_index import PictureIndex
from eyespot.ledger.judgements import Judgements
from eyespot.storage import sqlite
from eyespot.storage.digests import rewriting
from eyespot.types import Encoder, EyespotError
from tests.gallery.test_any_damage import record
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


def test_a_gallery_whose_index_is_in_the_ledger_is_refused_with_the_way_out(gallery: Path, starter: Encoder) -> None:
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
        sql.execute("CREATE TABLE roots(number INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT)")
    with rewriting(gallery / "ledger", ["../ledger.sqlite"]):
        pass

    with raises(EyespotError):
        index(gallery, [], [starter])


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
