"""Any file of a gallery flipped, cut or deleted: it is noticed, and repaired to the bit by one command."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from eyespot import rooms
from eyespot.gallery.formats import npy
from eyespot.gallery.formats.registered import Copied, take_in
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.gallery.integrity import faults
from eyespot.gallery.view import Gallery
from eyespot.ledger.judgements import Judgements
from eyespot.search.index_choice import Measured, building, open_index, rebuild_index, store_index, stored_of
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import Encoder, Exchange, EyespotError, Judgement, Query, Term, UsageError, Verdict, no_progress
from tests.worlds import draw

SCRIPT = Path(__file__).parents[2] / "scripts" / "damage.py"


@pytest.fixture(scope="module")
def damage() -> Iterator[ModuleType]:
    import sys

    spec = importlib.util.spec_from_file_location("damage", SCRIPT)
    assert spec and spec.loader
    module = sys.modules["damage"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["damage"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "seed"), [(30, 3), pytest.param(500, 2, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_every_damage_is_noticed_and_repaired_to_the_bit(
    damage: ModuleType, tmp_path: Path, count: int, seed: int
) -> None:
    outcomes = damage.run(tmp_path, count, seed)

    assert len(outcomes) == count and len({outcome.file for outcome in outcomes}) > 15
    assert [outcome for outcome in outcomes if not outcome.noticed or outcome.differs or outcome.lost] == []


# -- the ledger ---------------------------------------------------------------------------------------------


@pytest.fixture
def gallery(tmp_path: Path, starter: Encoder) -> Path:
    """Six photos and twenty judgements."""
    for seed in range(6):
        draw(tmp_path / "photos" / f"{seed}.jpg", seed)
    index(tmp_path / "gallery", [str(tmp_path / "photos")], [starter])
    with Judgements(tmp_path / "gallery" / "ledger.sqlite") as judgements:
        record(judgements, range(20))
    return tmp_path / "gallery"


def record(judgements: Judgements, images: range) -> None:
    query = Query("q", (Term(1.0, text="stripes"),))
    digest = judgements.enter([query])[query]
    made = (Judgement(digest, f"{image:03d}", "judge", "prompt", Verdict(grade=1)) for image in images)
    judgements.record(one._replace(exchanges=(Exchange({"image": one.image}),)) for one in made)


def judged(gallery: Path) -> list[str]:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        return [row.judgement.image for row in judgements.rows()]


def repaired(gallery: Path, starter: Encoder) -> Summary:
    return index(gallery, [], [starter], Options(repair=True))


def overwrite_first_page(gallery: Path, table: str) -> None:
    place = gallery / "ledger.sqlite"
    with closing(sqlite3.connect(place)) as sql:
        (page,) = sql.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with place.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


def killed_after(gallery: Path, images: range) -> None:
    """Further judgements, and a kill before they were copied: the log is still there."""
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


def test_judgements_come_back_from_their_copy(gallery: Path, starter: Encoder) -> None:
    before = judged(gallery)
    overwrite_first_page(gallery, "judgements")

    with pytest.raises(DamagedLedger, match=r"repair it with: eyespot index --repair -g"):
        judged(gallery)
    summary = repaired(gallery, starter)

    assert judged(gallery) == before and summary.embedded == 0
    assert faults(gallery, no_progress) == summary.damaged == []


def test_a_missing_ledger_is_not_replaced_by_an_empty_one(gallery: Path, starter: Encoder) -> None:
    (gallery / "ledger.sqlite").unlink()

    with pytest.raises(DamagedLedger, match=r"it is missing\); repair it with"):
        judged(gallery)
    index(gallery, [], [starter])  # also without --repair

    assert len(judged(gallery)) == 20
    with Judgements(gallery / "ledger.sqlite") as judgements:
        sent = judgements.exchanges(row.judgement for row in judgements.rows())
    assert sorted(exchange.body["image"] for exchange in sent) == judged(gallery)


def test_what_a_killed_run_added_comes_from_pages(gallery: Path, starter: Encoder) -> None:
    killed_after(gallery, range(20, 30))
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite_first_page(gallery, "asked")

    summary = repaired(gallery, starter)

    assert len(judged(gallery)) == 30
    assert not [note for note in summary.notes if "lost" in note]


def test_what_a_killed_run_added_is_copied_by_the_next(gallery: Path, starter: Encoder) -> None:
    killed_after(gallery, range(20, 30))
    index(gallery, [], [starter])
    overwrite_first_page(gallery, "judgements")

    summary = repaired(gallery, starter)

    assert len(judged(gallery)) == 30
    assert not [note for note in summary.notes if "lost" in note]


def test_a_lost_verdict_is_named(gallery: Path, starter: Encoder) -> None:
    """Its page is damaged, and there was no copy of it yet; the index of the table still knows it."""
    killed_after(gallery, range(20, 23))
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite_first_page(gallery, "judgements")

    summary = repaired(gallery, starter)

    (sentence,) = [note for note in summary.notes if "lost for good" in note]
    assert all(
        f"judgements {number} (" in sentence and f"image {number - 1:03d}" in sentence for number in (21, 22, 23)
    )
    assert len(judged(gallery)) == 20
    assert (gallery / "ledger.sqlite.damaged").exists()


@pytest.mark.parametrize("size", [0, 3000, 4096, 20_000])
def test_a_cut_of_a_closed_ledger_is_called_no_loss(gallery: Path, starter: Encoder, size: int) -> None:
    before = judged(gallery)
    os.truncate(gallery / "ledger.sqlite", size)

    notes = repaired(gallery, starter).notes

    assert judged(gallery) == before
    assert not [note for note in notes if "lost" in note]
    assert faults(gallery, no_progress) == []


def test_what_another_program_wrote_before_a_cut_is_told_of(gallery: Path, starter: Encoder) -> None:
    """Nothing can tell such a ledger from one that was only cut, so the old file stays, and the note says why."""
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql, sql:
        sql.execute("UPDATE judgements SET reason = 'by hand'")
    os.truncate(gallery / "ledger.sqlite", 20_000)

    notes = repaired(gallery, starter).notes

    assert len(judged(gallery)) == 20
    assert [note for note in notes if "if another program wrote to it later" in note and ".damaged" in note]
    assert (gallery / "ledger.sqlite.damaged").stat().st_size == 20_000


def test_a_cut_of_a_ledger_that_was_never_closed_is_called_a_loss(gallery: Path, starter: Encoder) -> None:
    killed_after(gallery, range(20, 23))
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql:
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(gallery / "ledger.sqlite", 20_000)

    notes = repaired(gallery, starter).notes

    assert len(judged(gallery)) == 20
    assert [note for note in notes if "lost for good" in note and "judgements since its last copy" in note]
    assert (gallery / "ledger.sqlite.damaged").exists()


@pytest.mark.long
def test_a_damaged_log_is_noticed(gallery: Path, starter: Encoder) -> None:
    killed_after(gallery, range(20, 30))
    log = gallery / "ledger.sqlite-wal"
    data = bytearray(log.read_bytes())
    data[32 + 24 + 100] ^= 1
    log.write_bytes(data)

    (fault,) = faults(gallery, no_progress)
    repaired(gallery, starter)

    assert fault.file == "ledger.sqlite" and "its log is damaged" in fault.reason
    assert judged(gallery)[:20] == [f"{image:03d}" for image in range(20)]
    assert faults(gallery, no_progress) == []


# -- indexes ------------------------------------------------------------------------------------------------


@pytest.fixture(params=[{"kind": "pq", "parts": 4}, {"kind": "rabitq", "bits": 1}], ids=["pq", "rabitq"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """2,000 vectors of others, and an approximate index of them."""
    pytest.importorskip("faiss")
    vectors = np.random.default_rng(1).normal(size=(2000, 16)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    take_in(tmp_path / "gallery", npy.source([tmp_path / "vectors.npy"]), "other", Copied())
    view = Gallery(tmp_path / "gallery").view(Gallery(tmp_path / "gallery").stem())
    settings = {**request.param, "probes": 1, "depth": 100}
    with building(view) as place:
        rooms.load("indexes", "faiss", view.blocks, folder=place / "faiss", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.9, 50, 10, "drawn")), place / "faiss")
    return tmp_path / "gallery"


@pytest.mark.parametrize("name", ["part-00000.faiss", "layout.json", "settings.json", "digests.txt"])
def test_an_index_is_built_again_to_the_bit(indexed: Path, name: str) -> None:
    view = Gallery(indexed).view(Gallery(indexed).stem())
    folder = indexed / "indexes" / view.stem / "faiss"
    before = {place.name: place.read_bytes() for place in folder.iterdir()}
    data = before[name]
    (folder / name).write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])

    noticed = [fault.file for fault in faults(indexed, no_progress)]
    rebuild_index(view, "faiss")

    assert noticed == [f"indexes/{view.stem}/faiss/{name}"]
    assert {place.name: place.read_bytes() for place in folder.iterdir()} == before
    assert faults(indexed, no_progress) == []


def test_a_search_names_the_part_that_was_changed(indexed: Path) -> None:
    view = Gallery(indexed).view(Gallery(indexed).stem())
    place = indexed / "indexes" / view.stem / "faiss" / "part-00000.faiss"
    data = place.read_bytes()
    place.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])

    with pytest.raises(EyespotError, match=r"part-00000.faiss is missing or damaged .* eyespot index --repair -g"):
        open_index(view, "faiss")


def test_an_index_of_changed_vectors_or_without_settings_says_what_is_lost(indexed: Path) -> None:
    view = Gallery(indexed).view(Gallery(indexed).stem())
    folder = indexed / "indexes" / view.stem / "faiss"
    shutil.copytree(indexed, indexed.with_name("other"))
    for name in ("settings.json", "settings.second.json"):
        (folder / name).write_text("{}")
    with pytest.raises(EyespotError, match=r"the settings of the index .* are lost; make a new one with: eyespot tune"):
        rebuild_index(view, "faiss")

    other = indexed.with_name("other")
    np.save(other / "shards/00000" / f"{view.stem}.npy", np.eye(2000, 16, dtype=np.float32))
    for place in (other / "shards").rglob("digests.txt"):
        place.unlink()
    with pytest.raises(UsageError, match="is of other vectors"):
        rebuild_index(Gallery(other).view(view.stem), "faiss")


# -- a glance -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["shards/00000/items.parquet", "shards/00000/starter-????????.npy", "gallery.toml"])
def test_a_flip_that_keeps_the_date_is_seen_by_a_search(gallery: Path, damage: ModuleType, pattern: str) -> None:
    Gallery(gallery).view(Gallery(gallery).stem())
    (place,) = gallery.glob(pattern)
    damage.strike(place, "flipped", random.Random(3))

    with pytest.raises(EyespotError, match=rf"{place.name}.* (eyespot index|damaged)"):
        Gallery(gallery).view(Gallery(gallery).stem())


def test_a_copy_is_read_once(gallery: Path, tmp_path: Path) -> None:
    """Its files are all newer than its digests say, until they were compared."""
    copy = Path(shutil.copytree(gallery, tmp_path / "copy"))
    before = (copy / "shards/00000/digests.txt").stat().st_mtime_ns

    Gallery(copy).view(Gallery(copy).stem())
    once = (copy / "shards/00000/digests.txt").stat().st_mtime_ns
    Gallery(copy).view(Gallery(copy).stem())

    assert before < once == (copy / "shards/00000/digests.txt").stat().st_mtime_ns
