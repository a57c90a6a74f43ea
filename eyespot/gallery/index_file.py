"""The file of the index of pictures, `index.sqlite`, and its move out of the ledger of an earlier eyespot.

The index can be made again from the shards, and a run holds long transactions in it. What people made is in
`ledger.sqlite`, which is small and never waits for them. Until December 2026 all tables were in `ledger.sqlite`: the
first run moves those of the index. Killed at any moment, each of them is whole in one of the two files, or in both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from eyespot.gallery import older_ledgers
from eyespot.gallery.index_tables import SCHEMA
from eyespot.storage import sqlite
from eyespot.storage.atomic import put_file
from eyespot.storage.copies import FOLDER, INDEX, LEDGER, name_of, tables_of
from eyespot.storage.digests import sound_digests
from eyespot.types import EyespotError

__all__ = ["INDEX", "LEDGER", "TABLES", "file_to_read", "move_index", "settle_ledger"]

TABLES = tables_of(SCHEMA) | older_ledgers.TABLES
# Views in a ledger without an index. An earlier eyespot of any age makes an index of a table of one of these names, and
# SQLite refuses that for a view: so it ends with an error and begins no second index of the pictures.
_FENCE = ("files", "paths")
_NOTE = f"SELECT 'the index of pictures is in {INDEX}' AS note"


def file_to_read(gallery: Path) -> Path:
    """The file that the index is in: the ledger as long as no run has moved it."""
    index, ledger = gallery / INDEX, gallery / LEDGER
    return ledger if ledger.exists() and not index.exists() else index


def move_index(gallery: Path) -> None:
    """Move the tables of the index out of the ledger, if they are there; whoever calls this holds the gallery's lock.

    Raises `DamagedLedger` if the ledger is that, `sqlite3.OperationalError` on a full disk; all stays as it was then.
    """
    ledger, index = gallery / LEDGER, gallery / INDEX
    with (
        sqlite.whole(ledger),
        closing(sqlite.connect(ledger, derived=True, later=SCHEMA, settles=False)) as sql,
    ):
        tables = sorted(_names(sql, "table") & TABLES)
        if tables and not index.exists():
            _copy(ledger, index, tables)
        if tables or not _names(sql, "view").issuperset(_FENCE):
            _drop(sql, tables)
        _shrink(sql)
        sql.settles = True


def settle_ledger(gallery: Path) -> None:
    """Give a ledger that nobody has open its digest: in a new gallery it was made before the header."""
    ledger = gallery / LEDGER
    if (gallery / "gallery.toml").exists() and name_of(ledger) not in sound_digests(gallery / FOLDER):
        with suppress(EyespotError, OSError, sqlite3.Error):  # whoever opens it next says what is wrong with it
            sqlite.connect(ledger, derived=True, later=SCHEMA).close()


def _names(sql: sqlite3.Connection, kind: str) -> set[str]:
    return {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))}


def _copy(ledger: Path, index: Path, tables: Iterable[str]) -> None:
    """Write the tables as they are to a new file, which gets its name when it is whole and on the disk."""
    part = index.with_name(f"{index.name}.part")
    for leftover in (part.name, f"{index.name}-wal", f"{index.name}-shm"):  # a log of a lost index is not of this one
        index.with_name(leftover).unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(part, isolation_level=None)) as sql:
            sql.execute("PRAGMA main.journal_mode = OFF")  # a half is thrown away
            sql.execute("PRAGMA main.synchronous = OFF")
            sql.execute("ATTACH ? AS ledger", (str(ledger),))
            sql.execute("BEGIN")
            for table in tables:
                _copy_table(sql, table)
            for (view,) in sql.execute("SELECT sql FROM ledger.sqlite_master WHERE type = 'view' AND name = 'files'"):
                sql.execute(view)
            sql.execute("COMMIT")
        put_file(part, index)
    finally:
        part.unlink(missing_ok=True)


def _copy_table(sql: sqlite3.Connection, table: str) -> None:
    """A table of any age, as it was made, with its rows and then its indexes."""
    made = "SELECT sql FROM ledger.sqlite_master WHERE type = ? AND tbl_name = ? AND sql IS NOT NULL"
    (schema,) = sql.execute(made, ("table", table)).fetchone()
    sql.execute(schema)
    sql.execute(f"INSERT INTO main.{table} SELECT * FROM ledger.{table}")
    for (schema,) in sql.execute(made, ("index", table)).fetchall():
        sql.execute(schema)


def _drop(sql: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Take the tables out of the ledger, and leave views there that keep an earlier eyespot from making them again."""
    with sqlite.transaction(sql):
        for table in tables:
            sql.execute(f"DROP TABLE {table}")
        for name in _FENCE:
            sql.execute(f"DROP VIEW IF EXISTS {name}")
            sql.execute(f"CREATE VIEW {name} AS {_NOTE}")


def _shrink(sql: sqlite3.Connection) -> None:
    """Give back the room of the tables, also after a kill: each verdict's digest takes a read of the whole file."""
    free, pages = (sql.execute(f"PRAGMA {count}").fetchone()[0] for count in ("freelist_count", "page_count"))
    if free * 2 > pages:
        with suppress(sqlite3.OperationalError):  # without room for it a later run does it
            sql.execute("VACUUM")
