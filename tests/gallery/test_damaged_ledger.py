"""A ledger or an index that is damaged on the disk: one sentence, whose way out gives the gallery back."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from eyespot.gallery.formats import npy
from eyespot.gallery.formats.registered import Copied, take_in
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.reading import reading
from eyespot.gallery.view import Gallery
from eyespot.ledger.judgements import Judgements
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import Encoder, EyespotError, Judgement, Query, Term, Verdict
from tests.worlds import draw

WAY_OUT = r"cannot be used as (a ledger|the index of a gallery) \(.*\); repair it with: eyespot index --repair -g \S+$"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, starter: Encoder) -> Path:
    """Forty photos, one of them none, and their gallery with a judgement in its ledger."""
    folder = tmp_path_factory.mktemp("sound")
    for seed in range(40):
        draw(folder / "photos" / f"{seed:02d}.jpg", seed)
    (folder / "photos" / "none.jpg").write_bytes(b"none")
    index(folder / "sound", [str(folder / "photos")], [starter], Options(shard_rows=16))
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


def live(gallery: Path) -> int:
    view = Gallery(gallery).view(Gallery(gallery).stem())
    return int(view.live.sum())


@pytest.mark.parametrize("table", ["plan", "imported", "pictures", "spans", "paths", "roots", "stale", "labels"])
def test_repairing_with_a_damaged_table_names_a_way_out_that_works(gallery: Path, starter: Encoder, table: str) -> None:
    before = sorted(place.read_bytes() for place in gallery.glob("shards/*/*.npy"))
    verdicts = (gallery / "ledger.sqlite").read_bytes()
    pages(gallery / "index.sqlite", table)

    with pytest.raises(DamagedLedger, match=WAY_OUT) as excinfo:
        index(gallery, [], [starter], Options())
    summary = index(gallery, [], [starter], Options(repair=True))
    with Judgements(gallery / "ledger.sqlite") as judgements:
        grades = [row.judgement.verdict.grade for row in judgements.rows() if row.judgement.verdict]

    assert str(gallery / "index.sqlite") in str(excinfo.value)
    assert grades == [1] and not [note for note in summary.notes if "lost" in note]
    assert (gallery / "ledger.sqlite").read_bytes() == verdicts and not [*gallery.glob("*.damaged*")]

    assert (summary.pictures, summary.embedded, len(summary.failures), live(gallery)) == (40, 0, 1, 40)
    assert sorted(place.read_bytes() for place in gallery.glob("shards/*/*.npy")) == before


def test_what_else_reads_it_says_the_same(gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    pages(gallery / "index.sqlite", "paths", "problems", "imported")
    pages(gallery / "ledger.sqlite", "judgements", "asked")

    def failures() -> None:
        with reading(gallery) as ledger:
            ledger.failures()

    def judgements() -> None:
        with Judgements(gallery / "ledger.sqlite") as known:
            known.queries()

    def importing() -> None:
        take_in(gallery, npy.source([tmp_path]), "other", Copied())

    readers: list[Callable[[], None]] = [failures, judgements, importing]
    for ask in readers:
        with pytest.raises(DamagedLedger, match=WAY_OUT):
            ask()


def test_a_damaged_ledger_leaves_the_index_as_it_is(gallery: Path, starter: Encoder) -> None:
    pages(gallery / "ledger.sqlite", "judgements", "asked")
    index_file = gallery / "index.sqlite"
    before = index_file.stat().st_ino
    with reading(gallery) as ledger:
        seen = [*ledger.sql.execute("SELECT * FROM files ORDER BY root, path")]

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        index(gallery, [], [starter], Options())
    summary = index(gallery, [], [starter], Options(repair=True))

    with reading(gallery) as ledger:  # recovery would have forgotten when each file was changed, and read all again
        assert [*ledger.sql.execute("SELECT * FROM files ORDER BY root, path")] == seen
    assert index_file.stat().st_ino == before and not [note for note in summary.notes if str(index_file) in note]
    with Judgements(gallery / "ledger.sqlite") as judgements:
        assert len(list(judgements.rows())) == 1


@pytest.mark.parametrize("name", ["ledger.sqlite", "index.sqlite"])
def test_a_ledger_damaged_anywhere_ends_in_no_other_error(gallery: Path, starter: Encoder, name: str) -> None:
    place, rng = gallery / name, random.Random(5)
    whole = place.read_bytes()
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 20, 400])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        place.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        for log in gallery.glob(f"{name}-*"):
            log.unlink()

        try:
            index(gallery, [], [starter], Options())
        except EyespotError as error:
            assert "\n" not in str(error)


def test_a_log_that_a_killed_run_left_beside_it_does_no_harm(gallery: Path, starter: Encoder, tmp_path: Path) -> None:
    """SQLite must not take up the old log for the new one."""
    place = gallery / "index.sqlite"
    with closing(sqlite3.connect(place, isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode=WAL")
        sql.execute("UPDATE paths SET failed = 'of the old log'")
        shutil.copy(gallery / "index.sqlite-wal", tmp_path / "log")
    place.write_bytes(b"\xff" * 9000)
    shutil.copy(tmp_path / "log", gallery / "index.sqlite-wal")

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        index(gallery, [], [starter], Options())
    summary = index(gallery, [], [starter], Options(repair=True))

    assert (summary.pictures, summary.embedded, len(summary.failures)) == (40, 0, 1)
