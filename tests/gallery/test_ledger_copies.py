"""A ledger's digest and copies: written when it closes, and never in the way of what somebody recorded since."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from eyespot.gallery.indexing import index
from eyespot.gallery.integrity import faults
from eyespot.gallery.picture_index import PictureIndex
from eyespot.ledger.judgements import Judgements
from eyespot.storage import copies, sqlite
from eyespot.storage.digests import DIGESTS, read_digests, rewriting
from eyespot.types import Encoder, EyespotError, no_progress
from tests.command import run_eyespot, run_process
from tests.gallery.test_any_damage import judged, killed_after, overwrite_first_page, record, repaired
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import make_gallery
from tests.worlds.galleries import shard_contents, two_roots


def make(folder: Path) -> None:
    with Judgements(make_gallery(folder, 2) / "ledger.sqlite") as judgements:
        record(judgements, range(20))


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Two photos and twenty judgements."""
    return Path(shutil.copytree(made_once("twenty judgements", make) / "gallery", tmp_path / "gallery"))


def reasons(gallery: Path) -> dict[str, str | None]:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        return {row.judgement.image: one.reason for row in judgements.rows() if (one := row.judgement.verdict)}


def has_digest(gallery: Path) -> bool:
    return "../ledger.sqlite" in read_digests(gallery / "ledger")


def test_a_ledger_opened_while_it_closes_has_no_digest(gallery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashing = threading.Event()
    digest = copies.file_blake2b

    def slow(path: Path) -> str:
        hashing.set()
        time.sleep(0.2)  # the second waits for this, or comes later: it is the same in the end
        return digest(path)

    monkeypatch.setattr(copies, "file_blake2b", slow)
    first = Judgements(gallery / "ledger.sqlite")
    record(first, range(20, 21))
    closer = threading.Thread(target=first.close)
    closer.start()
    assert hashing.wait(60)

    with Judgements(gallery / "ledger.sqlite") as second:
        closer.join()
        assert not has_digest(gallery)
        record(second, range(21, 22))

    assert has_digest(gallery) and len(judged(gallery)) == 22 and faults(gallery, no_progress) == []


def test_what_another_program_wrote_survives_a_repair(gallery: Path, starter: Encoder) -> None:
    time.sleep(0.02)
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql, sql:
        sql.execute("UPDATE judgements SET reason = 'by hand' WHERE image = '003'")
        sql.execute(
            "INSERT INTO judgements SELECT 99, asked, judge, turn, 'new', settled, probability, grade, reason, "
            "confidence, failure, refused, rank, at, calls, tokens_in, tokens_out, money FROM judgements LIMIT 1"
        )

    summary = repaired(gallery, starter)

    assert sorted(judged(gallery)) == [*(f"{image:03d}" for image in range(20)), "new"]
    assert reasons(gallery)["003"] == "by hand"
    assert any("ledger.sqlite.damaged" in note for note in summary.notes)


def test_a_log_that_a_kill_cut_off_before_a_commit_is_no_damage(gallery: Path) -> None:
    killed_after(gallery, range(20, 30))
    log = gallery / "ledger.sqlite-wal"
    data = log.read_bytes()
    frame = bytearray(data[32 : 32 + 24 + int.from_bytes(data[8:12], "big")])
    frame[4:8], frame[30] = bytes(4), frame[30] ^ 1  # of no commit, and not whole
    log.write_bytes(data + frame)

    assert faults(gallery, no_progress) == []
    assert len(judged(gallery)) == 30


def test_a_copy_without_a_digest_counts_by_the_checksums_of_its_pages(gallery: Path) -> None:
    folder = gallery / "ledger"
    with rewriting(folder, ["judgements.parquet"]):
        pass
    (gallery / "ledger.sqlite").unlink()
    index(gallery, [], [])

    assert len(judged(gallery)) == 20


def test_a_damaged_copy_of_a_lost_ledger_is_not_overwritten_in_silence(gallery: Path, starter: Encoder) -> None:
    (gallery / "ledger.sqlite").unlink()
    copy = gallery / "ledger" / "judgements.parquet"
    copy.write_bytes(copy.read_bytes()[:-40])
    index(gallery, [], [starter])

    with pytest.raises(EyespotError, match=r"judgements.parquet is damaged.*index --repair"):
        judged(gallery)
    notes = repaired(gallery, starter).notes

    assert any("lost for good with a damaged copy: what was recorded in judgements" in note for note in notes)
    assert judged(gallery) == []


def test_another_ledger_in_the_folder_has_rows_of_its_own(gallery: Path) -> None:
    for wanted in (range(3), range(0)):
        with Judgements(gallery / "mine.sqlite") as mine:
            record(mine, wanted)
            assert len(list(mine.rows())) == 3

    assert len(judged(gallery)) == 20 and faults(gallery, no_progress) == []


def test_a_change_by_a_killed_run_reaches_the_copies(gallery: Path, starter: Encoder) -> None:
    killed_after(gallery, range(20, 21))
    with closing(sqlite3.connect(gallery / "ledger.sqlite")) as sql, sql:
        sql.execute("UPDATE judgements SET reason = 'changed' WHERE image = '003'")
        sql.execute("DELETE FROM judgements WHERE image = '020'")
    Judgements(gallery / "ledger.sqlite").close()
    overwrite_first_page(gallery, "judgements")
    repaired(gallery, starter)

    assert reasons(gallery)["003"] == "changed" and len(reasons(gallery)) == 20


def test_few_rows_copy_no_large_table(gallery: Path, starter: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_SMALL", 10)
    monkeypatch.setattr(copies, "_GROWTH", 5)
    before = (gallery / "ledger" / "judgements.parquet").read_bytes()
    with Judgements(gallery / "ledger.sqlite") as judgements:
        record(judgements, range(20, 22))
    assert (gallery / "ledger" / "judgements.parquet").read_bytes() == before
    (gallery / "ledger" / "judgements.behind").unlink()  # its line among the digests counts
    overwrite_first_page(gallery, "asked")
    repaired(gallery, starter)

    assert len(judged(gallery)) == 22
    with Judgements(gallery / "ledger.sqlite") as judgements:
        record(judgements, range(22, 40))
    assert "judgements.behind" not in (gallery / "ledger" / DIGESTS).read_text()


def test_a_ledger_that_nobody_changed_keeps_its_digest(gallery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise AssertionError("every byte is read")

    before = read_digests(gallery / "ledger")
    monkeypatch.setattr(copies, "file_blake2b", refuse)
    Judgements(gallery / "ledger.sqlite").close()

    assert read_digests(gallery / "ledger") == before


# -- verdicts wait for no index run -------------------------------------------------------------------------------


def verdicts_apart_make(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos" / "none.jpg").write_bytes(b"none")
    with Judgements(make_gallery(folder, 6) / "ledger.sqlite") as judgements:
        record(judgements, range(20))


@pytest.fixture
def verdicts_apart_gallery(tmp_path: Path) -> Path:
    """Six photos, one of them none, and twenty judgements."""
    return Path(shutil.copytree(made_once("verdicts apart", verdicts_apart_make) / "gallery", tmp_path / "gallery"))


def test_a_gallery_with_its_index_in_the_ledger_is_refused(verdicts_apart_gallery: Path, starter: Encoder) -> None:
    with closing(sqlite3.connect(verdicts_apart_gallery / "ledger.sqlite")) as sql:
        sql.execute("CREATE TABLE roots(number INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT)")
    with rewriting(verdicts_apart_gallery / "ledger", ["../ledger.sqlite"]):
        pass

    with raises(EyespotError):
        index(verdicts_apart_gallery, [], [starter])


VERDICT = """
import sys
from pathlib import Path
from eyespot.ledger.judgements import Judgements
from tests.gallery.test_any_damage import record
with Judgements(Path(sys.argv[1]) / "ledger.sqlite") as judgements:
    record(judgements, range(20, 21))
"""


def test_a_verdict_waits_for_no_transaction_of_an_index_run(verdicts_apart_gallery: Path) -> None:
    """Another process records it while this one holds the index's write lock."""
    with closing(PictureIndex(verdicts_apart_gallery)) as ledger, ledger.transaction():
        ledger.sql.execute("UPDATE paths SET size = size + 1")
        subprocess.run(
            [sys.executable, "-c", VERDICT, str(verdicts_apart_gallery)], check=True, timeout=sqlite.WAIT - 10
        )
        assert ledger.sql.in_transaction
        with closing(sqlite.connect_to_read(verdicts_apart_gallery / "ledger.sqlite")) as sql:
            assert sql.execute("SELECT count(*) FROM judgements WHERE image = '020'").fetchone() == (1,)


def test_a_run_waits_for_no_open_verdict(verdicts_apart_gallery: Path, starter: Encoder) -> None:
    with closing(sqlite3.connect(verdicts_apart_gallery / "ledger.sqlite", isolation_level=None)) as sql:
        sql.execute("BEGIN IMMEDIATE")
        sql.execute("UPDATE judgements SET reason = 'open'")
        assert index(verdicts_apart_gallery, [], [starter]).pictures == 6
        sql.execute("COMMIT")

    with Judgements(verdicts_apart_gallery / "ledger.sqlite") as judgements:
        assert {row.judgement.verdict.reason for row in judgements.rows() if row.judgement.verdict} == {"open"}


# -- indexing that is killed (SIGKILL, no warning), or has no room, ends in the same gallery as indexing left alone


def line(gallery: Path, photos: Path) -> list[str]:
    """Index two roots at once; the second has label columns that the first lacks."""
    return ["index", *map(str, sorted(photos.iterdir())), "-g", str(gallery)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 photos in two shards, indexed without trouble, but for two files that are bad."""
    folder = tmp_path_factory.mktemp("calm")
    assert run_eyespot(*line(folder / "gallery", two_roots(folder / "photos", 80))).returncode == 3
    return folder


@pytest.mark.long
@pytest.mark.parametrize("kibibytes", [24, 90])
def test_no_room_on_the_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, calm: Path, kibibytes: int) -> None:
    """A limit on the size of files stands in for a full disk; it hits the ledger or the vectors."""
    again = line(tmp_path / "gallery", calm / "photos")
    full = run_process(*again, before=["bash", "-c", f'ulimit -f {kibibytes}; exec "$@"', "-"])
    assert run_eyespot(*again).returncode == 3
    (sentence,) = full.stderr.splitlines()
    assert full.returncode == 1 and "make room" in sentence
    assert shard_contents(tmp_path / "gallery") == shard_contents(calm / "gallery")
