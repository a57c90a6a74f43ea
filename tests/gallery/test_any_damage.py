"""Any file of a gallery flipped, cut or deleted: it is noticed, and repaired to the bit by one command."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from eyespot import rooms
from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery.indexing import Summary
from eyespot.gallery.integrity import faults
from eyespot.gallery.reading import reading
from eyespot.ledger.judgements import Judgements
from eyespot.search.index_choice import Measured, building, open_index, store_index, stored_of
from eyespot.storage.digests import CHANGED
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import Encoder, Exchange, EyespotError, Judgement, Query, Term, Verdict, no_progress
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds import STARTER, draw_photos, index_gallery
from tests.worlds.galleries import contents, flip, opened

WAY_OUT = r": eyespot index --repair -g \S+$"
SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # its data classes look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def damage() -> ModuleType:
    return script("damage")


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "seed"), [(30, 3), pytest.param(500, 2, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_every_damage_is_noticed_and_repaired(damage: ModuleType, tmp_path: Path, count: int, seed: int) -> None:
    outcomes = damage.run(tmp_path, count, seed)
    assert len(outcomes) == count and len({outcome.file for outcome in outcomes}) > 15
    assert [outcome for outcome in outcomes if not outcome.noticed or outcome.differs or outcome.lost] == []


@requires("fsspec")
@pytest.mark.parametrize("count", [pytest.param(16, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.timeout(3600)
def test_the_command_that_a_reader_of_a_published_gallery_is_given_heals_it(tmp_path: Path, count: int) -> None:
    module = script("damage_published")
    found = list(module.faults(module.World(tmp_path, f"file://{tmp_path}/store", run=run_eyespot), count, seed=1))
    assert [fault for fault in found if fault[2] not in ("healed", "not seen")] == []
    assert sum(became == "healed" for _, _, became in found) >= 0.4 * count


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty photos in three shards, a file that is none, and twenty judgements."""
    folder = tmp_path_factory.mktemp("sound")
    draw_photos(folder / "photos", 20)
    (folder / "photos" / "none.jpg").write_bytes(b"none")
    index_gallery(folder / "gallery", folder / "photos", shard_rows=8)
    with Judgements(folder / "gallery" / "ledger.sqlite") as judgements:
        record(judgements, range(20))
    return folder / "gallery"


@pytest.fixture
def gallery(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "gallery"))


def record(judgements: Judgements, images: range) -> None:
    query = Query("q", (Term(1.0, text="stripes"),))
    digest = judgements.enter([query])[query]
    made = (Judgement(digest, f"{image:03d}", "judge", "prompt", Verdict(grade=1)) for image in images)
    judgements.record(one._replace(exchanges=(Exchange({"image": one.image}),)) for one in made)


def judged(gallery: Path) -> list[str]:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        return [row.judgement.image for row in judgements.rows()]


def repaired(gallery: Path, *encoders: Encoder) -> Summary:
    summary: Summary = index_gallery(gallery, encoders=encoders or STARTER, repair=True)
    return summary


def overwrite_first_page(gallery: Path, *tables: str, name: str = "ledger.sqlite") -> None:
    with closing(sqlite3.connect(gallery / name)) as sql:
        (size,) = sql.execute("PRAGMA page_size").fetchone()
        pages = dict(sql.execute("SELECT name, rootpage FROM sqlite_master"))
    with (gallery / name).open("r+b") as file:
        for table in tables:
            file.seek((pages[table] - 1) * size)
            file.write(b"\xff" * size)


def killed_after(gallery: Path, images: range, log: bool = True) -> None:
    """Further judgements, and a kill before they were copied; without a log, they are in the ledger itself by then."""
    copies = shutil.copytree(gallery / "ledger", gallery.with_name("copies"))
    judgements = Judgements(gallery / "ledger.sqlite")
    record(judgements, images)
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        shutil.copy(gallery / name, gallery.with_name(name))
    digests = (gallery / "ledger" / "digests.txt").read_bytes()
    judgements.close()
    shutil.rmtree(gallery / "ledger")
    shutil.copytree(copies, gallery / "ledger")
    (gallery / "ledger" / "digests.txt").write_bytes(digests)
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        shutil.move(gallery.with_name(name), gallery / name)
    if not log:
        with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
            sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_missing_ledger_is_not_replaced_by_an_empty_one(gallery: Path) -> None:
    (gallery / "ledger.sqlite").unlink()

    with raises(DamagedLedger):
        judged(gallery)
    index_gallery(gallery)  # also without --repair

    assert len(judged(gallery)) == 20
    with Judgements(gallery / "ledger.sqlite") as judgements:
        sent = judgements.exchanges(row.judgement for row in judgements.rows())
    assert sorted(exchange.body["image"] for exchange in sent) == judged(gallery)


@pytest.mark.parametrize("later", [False, True], ids=["from pages", "copied by the next run"])
def test_what_a_killed_run_added_survives(gallery: Path, later: bool) -> None:
    killed_after(gallery, range(20, 30), log=later)
    if later:
        index_gallery(gallery)
    overwrite_first_page(gallery, "judgements" if later else "asked")
    summary = repaired(gallery)
    assert len(judged(gallery)) == 30
    assert not [note for note in summary.notes if "lost" in note]


@pytest.mark.parametrize("cut", [False, True], ids=["a damaged page", "a cut"])
def test_what_may_be_lost_is_stated_with_the_old_file(gallery: Path, cut: bool) -> None:
    """It was never closed, so there was no copy of its last rows yet."""
    killed_after(gallery, range(20, 23), log=False)
    if cut:
        os.truncate(gallery / "ledger.sqlite", 20_000)
    else:
        overwrite_first_page(gallery, "judgements")
    assert [
        note for note in repaired(gallery).notes if "since its last copy" in note and "ledger.sqlite.damaged" in note
    ]
    assert len(judged(gallery)) == 20 and (gallery / "ledger.sqlite.damaged").exists()


@pytest.mark.parametrize("size", [0, 3000, 4096, 20_000])
def test_a_cut_of_a_closed_ledger_is_called_no_loss(gallery: Path, size: int) -> None:
    before = judged(gallery)
    os.truncate(gallery / "ledger.sqlite", size)
    notes = repaired(gallery).notes
    assert judged(gallery) == before and faults(gallery, no_progress) == []
    assert not [note for note in notes if "lost" in note]


def test_what_another_program_wrote_before_a_cut_is_told_of(gallery: Path) -> None:
    """Nothing tells such a ledger from one that was only cut, so the old file stays, and the note says why."""
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql, sql:
        sql.execute("UPDATE judgements SET reason = 'by hand'")
    os.truncate(gallery / "ledger.sqlite", 20_000)
    notes = repaired(gallery).notes
    assert len(judged(gallery)) == 20 and [note for note in notes if "another program" in note and ".damaged" in note]
    assert (gallery / "ledger.sqlite.damaged").stat().st_size == 20_000


OTHER = {
    "a vacuum": ("VACUUM", 20),
    "rows": ("INSERT INTO judges(number, judge, prompt) SELECT 99, 'other', prompt FROM judges LIMIT 1", 20),
    "a change of a row that has a copy": ("UPDATE judgements SET image = '999' WHERE image = '003'", None),
}


@pytest.mark.parametrize("change", OTHER)
def test_a_sound_ledger_that_another_program_wrote_to_is_taken_with_a_note(gallery: Path, change: str) -> None:
    statement, count = OTHER[change]
    with closing(sqlite3.connect(gallery / "ledger.sqlite", isolation_level=None)) as sql:
        sql.execute(statement)
    if count is None:  # which SQLite takes for sound, and is what a flipped bit looks like
        with pytest.raises(DamagedLedger, match=WAY_OUT):
            index_gallery(gallery)
        return
    assert not faults(gallery, no_progress)
    assert [note for note in index_gallery(gallery).notes if "another program" in note]
    assert len(judged(gallery)) == count and not [*gallery.glob("*.damaged")] and index_gallery(gallery).notes == []


@pytest.mark.parametrize("at", ["free space of a page", "a number of the header that nothing reads"])
def test_a_flip_that_no_row_shows_is_no_other_program(gallery: Path, at: str) -> None:
    """SQLite takes such a file for sound; its date says that nobody wrote to it."""
    before, place = judged(gallery), gallery / "ledger.sqlite"
    date = place.stat().st_mtime_ns
    with closing(sqlite3.connect(place)) as sql:
        (page,) = sql.execute("SELECT rootpage FROM sqlite_master WHERE name = 'judges'").fetchone()
        (size,) = sql.execute("PRAGMA page_size").fetchone()
    flip(place, (page - 1) * size + size // 2 if at.startswith("free") else 68)
    os.utime(place, ns=(date, date))
    with closing(sqlite3.connect(place)) as sql:
        assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    assert [(fault.file, fault.reason) for fault in faults(gallery, no_progress)] == [("ledger.sqlite", CHANGED)]
    with pytest.raises(DamagedLedger, match=WAY_OUT):
        judged(gallery)
    notes = repaired(gallery).notes
    assert judged(gallery) == before and faults(gallery, no_progress) == [] and not [*gallery.glob("*.damaged")]
    assert not [note for note in notes if "another program" in note or "lost" in note]


def test_rows_of_another_program_stay_where_a_copy_of_the_gallery_has_new_dates(gallery: Path) -> None:
    with closing(sqlite3.connect(gallery / "ledger.sqlite", isolation_level=None)) as sql:
        sql.execute(OTHER["rows"][0])
    os.utime(gallery / "ledger" / "digests.txt")  # copied after the ledger
    assert not faults(gallery, no_progress) and not [note for note in repaired(gallery).notes if "lost" in note]
    assert len(judged(gallery)) == 20
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
        assert sql.execute("SELECT count(*) FROM judges").fetchone() == (2,)


def test_a_damaged_log_is_noticed(gallery: Path) -> None:
    killed_after(gallery, range(20, 30))
    flip(gallery / "ledger.sqlite-wal", 32 + 24 + 100)
    (fault,) = faults(gallery, no_progress)
    notes = repaired(gallery).notes
    assert fault.file == "ledger.sqlite" and "log" in fault.reason
    assert [note for note in notes if "since its last copy" in note]
    assert judged(gallery)[:20] == [f"{image:03d}" for image in range(20)]
    assert faults(gallery, no_progress) == []


@pytest.mark.parametrize("table", ["plan", "imported", "pictures", "spans", "paths", "roots", "stale", "labels"])
def test_repairing_with_a_damaged_table_names_a_way_out_that_works(gallery: Path, table: str) -> None:
    before = contents(gallery, "*.npy")
    verdicts = (gallery / "ledger.sqlite").read_bytes()
    overwrite_first_page(gallery, table, name="index.sqlite")

    with pytest.raises(DamagedLedger, match=f"index.sqlite .*{WAY_OUT}"):
        index_gallery(gallery)
    summary = index_gallery(gallery, repair=True)

    assert len(judged(gallery)) == 20 and not [note for note in summary.notes if "lost" in note]
    assert (gallery / "ledger.sqlite").read_bytes() == verdicts and not [*gallery.glob("*.damaged*")]
    assert (summary.pictures, summary.embedded, len(summary.failures)) == (20, 0, 1)
    assert opened(gallery).live.sum() == 20 and contents(gallery, "*.npy") == before


@pytest.mark.parametrize("reader", ["failures", "judgements", "import"])
def test_what_else_reads_it_says_the_same(gallery: Path, tmp_path: Path, reader: str) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    overwrite_first_page(gallery, "paths", "problems", "imported", name="index.sqlite")
    overwrite_first_page(gallery, "judgements", "asked")

    with pytest.raises(DamagedLedger, match=WAY_OUT):
        if reader == "failures":
            with reading(gallery) as ledger:
                ledger.failures()
        elif reader == "judgements":
            with Judgements(gallery / "ledger.sqlite") as known:
                known.queries()
        else:
            take_in(gallery, npy.source([tmp_path]), "other", copy=True)


def test_a_damaged_ledger_leaves_the_index_as_it_is(gallery: Path) -> None:
    overwrite_first_page(gallery, "judgements", "asked")
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
    assert len(judged(gallery)) == 20


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


@pytest.fixture(params=[{"kind": "pq", "parts": 4}, {"kind": "rabitq", "bits": 1}], ids=["pq", "rabitq"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """2,000 vectors of others, and an approximate index of them."""
    pytest.importorskip("faiss")
    vectors = np.random.default_rng(1).normal(size=(2000, 16)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    take_in(tmp_path / "gallery", npy.source([tmp_path / "vectors.npy"]), "other", copy=True)
    view = opened(tmp_path / "gallery")
    settings = {**request.param, "probes": 1, "depth": 100}
    with building(view) as place:
        rooms.load("indexes", "faiss", view.blocks, folder=place / "faiss", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.9, 50, 10, "drawn")), place / "faiss")
    return tmp_path / "gallery"


def test_a_damaged_index_is_removed_with_the_line_that_builds_it_again(indexed: Path, tmp_path: Path) -> None:
    sound = shutil.copytree(indexed, tmp_path / "sound")
    for name in ("part-00000.faiss", "layout.json", "settings.json", "digests.txt"):
        shutil.rmtree(indexed)
        shutil.copytree(sound, indexed)
        view = opened(indexed)
        folder = indexed / "indexes" / view.stem / "faiss"
        flip(folder / name, 60)

        assert [fault.file for fault in faults(indexed, no_progress)] == [f"indexes/{view.stem}/faiss/{name}"]
        if name == "part-00000.faiss":
            with pytest.raises(EyespotError, match=f"{name}.*eyespot tune -g"):
                open_index(view, "faiss")
        summary = index_gallery(indexed, encoders=(), repair=True)
        removed = [note for note in summary.notes if f"eyespot tune -e {view.stem} -g" in note]
        assert folder.exists() == (name == "digests.txt") != bool(removed) and summary.damaged == []


@pytest.mark.parametrize("pattern", ["shards/00000/items.parquet", "shards/00000/starter-????????.npy", "gallery.toml"])
def test_a_flip_that_keeps_the_date_is_seen_by_a_search(gallery: Path, damage: ModuleType, pattern: str) -> None:
    opened(gallery)
    (place,) = gallery.glob(pattern)
    damage.strike(place, "flipped", random.Random(3))
    with pytest.raises(EyespotError, match=re.escape(place.name)):
        opened(gallery)


def test_a_copy_is_read_once(gallery: Path, tmp_path: Path) -> None:
    """Its files are all newer than its digests say, until they were compared."""
    digests = Path(shutil.copytree(gallery, tmp_path / "copy")) / "shards/00000/digests.txt"
    times = [digests.stat().st_mtime_ns]
    for _ in range(2):
        opened(tmp_path / "copy")
        times.append(digests.stat().st_mtime_ns)
    assert times[0] < times[1] == times[2]
