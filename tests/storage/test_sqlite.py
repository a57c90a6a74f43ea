"""SQLite files of our own: commits are whole, damage is one sentence, and questions need no right to write."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from eyespot.storage.sqlite import DamagedLedger, check, connect, connect_to_read, table_names, transaction
from tests.wording import raises

SCHEMA = "CREATE TABLE IF NOT EXISTS numbers(n INTEGER)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "deep" / "numbers.sqlite"
    with closing(connect(place, SCHEMA)) as sql, transaction(sql):
        sql.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(1000)])
    return place


def count(sql: sqlite3.Connection) -> int:
    return int(sql.execute("SELECT count(*) FROM numbers").fetchone()[0])


def test_commits_last_and_others_may_read_meanwhile(path: Path) -> None:
    with closing(connect(path)) as sql:
        assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert sql.execute("PRAGMA synchronous").fetchone() == (2,)
        with transaction(sql):
            sql.execute("INSERT INTO numbers VALUES (1)")
            with closing(connect_to_read(path)) as reader:
                assert count(reader) == 1000
        assert count(sql) == 1001


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    with closing(connect(path)) as sql:
        with pytest.raises(ZeroDivisionError), transaction(sql):
            sql.execute("DELETE FROM numbers")
            raise ZeroDivisionError
        assert count(sql) == 1000


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def open_it() -> None:
        try:
            connect(tmp_path / "new.sqlite", SCHEMA).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_reader_changes_nothing(path: Path) -> None:
    with closing(connect_to_read(path)) as sql:
        assert (table_names(sql), count(sql)) == ({"numbers"}, 1000)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            sql.execute("DELETE FROM numbers")


@pytest.mark.parametrize("opened", [connect, check])
def test_a_file_that_is_not_sqlites_is_named_with_the_way_out(tmp_path: Path, opened: object) -> None:
    place = tmp_path / "notes.sqlite"
    place.write_bytes(b"these are notes" * 100)

    with raises(DamagedLedger):
        opened(place)  # type: ignore[operator]


def test_a_damaged_page_is_found(path: Path) -> None:
    check(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)

    with pytest.raises(DamagedLedger):
        check(path)
