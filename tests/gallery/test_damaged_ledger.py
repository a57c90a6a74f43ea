"""A ledger or an index that is damaged on the disk: one sentence, whose way out gives the gallery back."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from eyespot.gallery.formats import npy
from eyespot.gallery.formats.registered import Copied, take_in
from eyespot.gallery.reading import reading
from eyespot.ledger.judgements import Judgements
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import EyespotError, Judgement, Query, Term, Verdict
from tests.worlds import draw_photos, index_gallery
from tests.worlds.galleries import contents, opened

WAY_OUT = r": eyespot index --repair -g \S+$"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty photos and one that is none, and their gallery with a judgement in its ledger."""
    folder = tmp_path_factory.mktemp("sound")
    draw_photos(folder / "photos", 20)
    (folder / "photos" / "none.jpg").write_bytes(b"none")
    index_gallery(folder / "sound", folder / "photos", shard_rows=8)
    query = Query("q", (Term(1.0, text="stripes"),))
    with Judgements(folder / "sound" / "ledger.sqlite") as judgements:
        digest = judgements.enter([query])[query]
        judgements.record([Judgement(digest, "x", "judge", "prompt", Verdict(grade=1))])
    return folder


@pytest.fixture
def gallery(sound: Path) -> Path:
    """A copy to damage, where the photos are known."""
    shutil.rmtree(sound / "gallery", ignore_errors=True)
    return Path(shutil.copytree(sound / "sound", sound / "gallery"))


def pages(place: Path, *tables: str) -> None:
    """Overwrite the first page of some tables."""
    with closing(sqlite3.connect(place)) as sql:
        size = sql.execute("PRAGMA page_size").fetchone()[0]
        names = ", ".join(f"'{table}'" for table in tables)
        roots = [page for (page,) in sql.execute(f"SELECT rootpage FROM sqlite_master WHERE name IN ({names})")]
    with place.open("r+b") as file:
        for page in roots:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["plan", "imported", "pictures", "spans", "paths", "roots", "stale", "labels"])
def test_repairing_with_a_damaged_table_names_a_way_out_that_works(gallery: Path, table: str) -> None:
    before = contents(gallery, "*.npy")
    verdicts = (gallery / "ledger.sqlite").read_bytes()
    pages(gallery / "index.sqlite", table)

    with pytest.raises(DamagedLedger, match=f"index.sqlite .*{WAY_OUT}"):
        index_gallery(gallery)
    summary = index_gallery(gallery, repair=True)

    assert graded(gallery) == [1] and not [note for note in summary.notes if "lost" in note]
    assert (gallery / "ledger.sqlite").read_bytes() == verdicts and not [*gallery.glob("*.damaged*")]
    assert (summary.pictures, summary.embedded, len(summary.failures)) == (20, 0, 1)
    assert opened(gallery).live.sum() == 20 and contents(gallery, "*.npy") == before


def graded(gallery: Path) -> list[float]:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        return [row.judgement.verdict.grade for row in judgements.rows() if row.judgement.verdict]


@pytest.mark.parametrize("reader", ["failures", "judgements", "import"])
def test_what_else_reads_it_says_the_same(gallery: Path, tmp_path: Path, reader: str) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    pages(gallery / "index.sqlite", "paths", "problems", "imported")
    pages(gallery / "ledger.sqlite", "judgements", "asked")

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        if reader == "failures":
            with reading(gallery) as ledger:
                ledger.failures()
        elif reader == "judgements":
            with Judgements(gallery / "ledger.sqlite") as known:
                known.queries()
        else:
            take_in(gallery, npy.source([tmp_path]), "other", Copied())


def test_a_damaged_ledger_leaves_the_index_as_it_is(gallery: Path) -> None:
    pages(gallery / "ledger.sqlite", "judgements", "asked")
    index_file = gallery / "index.sqlite"
    before = index_file.stat().st_ino
    with reading(gallery) as ledger:
        seen = [*ledger.sql.execute("SELECT * FROM files ORDER BY root, path")]

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        index_gallery(gallery)
    summary = index_gallery(gallery, repair=True)

    with reading(gallery) as ledger:  # recovery would have forgotten when each file was changed, and read all again
        assert [*ledger.sql.execute("SELECT * FROM files ORDER BY root, path")] == seen
    assert index_file.stat().st_ino == before and not [note for note in summary.notes if str(index_file) in note]
    assert graded(gallery) == [1]


@pytest.mark.parametrize("name", ["ledger.sqlite", "index.sqlite"])
def test_a_ledger_damaged_anywhere_ends_in_no_other_error(gallery: Path, name: str) -> None:
    place, rng = gallery / name, random.Random(5)
    whole = place.read_bytes()
    for _ in range(15):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 20, 400])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        place.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        for log in gallery.glob(f"{name}-*"):
            log.unlink()

        try:
            index_gallery(gallery)
        except EyespotError as error:
            assert "\n" not in str(error)


def test_a_log_that_a_killed_run_left_beside_it_does_no_harm(gallery: Path, tmp_path: Path) -> None:
    """SQLite must not take up the old log for the new one."""
    place = gallery / "index.sqlite"
    with closing(sqlite3.connect(place, isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode=WAL")
        sql.execute("UPDATE paths SET failed = 'of the old log'")
        shutil.copy(gallery / "index.sqlite-wal", tmp_path / "log")
    place.write_bytes(b"\xff" * 9000)
    shutil.copy(tmp_path / "log", gallery / "index.sqlite-wal")

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        index_gallery(gallery)
    summary = index_gallery(gallery, repair=True)

    assert (summary.pictures, summary.embedded, len(summary.failures)) == (20, 0, 1)
