"""Ledgers of an eyespot before December 2026, which named each path and id in full: taken over once, or only read.

All of a take-over is one transaction: killed at any moment, the ledger is as it was or as it should be.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from eyespot.gallery.index_tables import VIEW, WordNumbers, fact_values, packed, split
from eyespot.storage import sqlite

TABLES = frozenset({"files", "items", "texts", "seen", "seen_labels"})
_ROWS = "SELECT shard, row, id, measured FROM items ORDER BY shard, row"


def is_older(sql: sqlite3.Connection) -> bool:
    """Whether a ledger is of that kind."""
    return "items" in sqlite.table_names(sql)


def take_over(sql: sqlite3.Connection) -> None:
    """Put the rows of an older ledger into the tables of today, which are there and empty; nothing in one of today."""
    if not is_older(sql):
        return
    with sqlite.transaction(sql):
        _take_pictures(sql)
        _take_paths(sql)
        if "texts" in sqlite.table_names(sql):
            sql.create_function("packed", 1, packed, deterministic=True)
            sql.execute(
                "INSERT INTO picture_texts SELECT number, t.facts, t.failed"
                " FROM texts t JOIN pictures p ON p.id = packed(t.id)"
            )
        for table in TABLES:
            sql.execute(f"DROP TABLE IF EXISTS main.{table}")
        sql.execute(VIEW)
    with suppress(sqlite3.OperationalError):  # without room for it the file stays as long as it is
        sql.execute("VACUUM")


def _take_pictures(sql: sqlite3.Connection) -> None:
    words, spans = WordNumbers(sql), list[list[int]]()

    def pictures() -> Iterator[tuple[Any, ...]]:
        rows = sql.execute(_ROWS)
        for number, (shard, row, id, measured) in enumerate(rows, 1):
            if spans and (spans[-1][2], spans[-1][3] + spans[-1][1]) == (shard, row):
                spans[-1][1] += 1
            else:
                spans.append([number, 1, shard, row])
            yield number, packed(id), *fact_values(json.loads(measured), words)

    sql.executemany("INSERT INTO pictures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", pictures())
    sql.executemany("INSERT INTO spans VALUES (?, ?, ?, ?)", spans)


def _take_paths(sql: sqlite3.Connection) -> None:
    folders: dict[tuple[int, str], int] = {}

    def paths() -> Iterator[tuple[Any, ...]]:
        for root, path, id, *facts, failed in sql.execute(
            "SELECT root, path, id, size, mtime, place, failed FROM main.files ORDER BY root, path"
        ):
            folder, name = split(path)
            number = folders.setdefault((root, folder), len(folders) + 1)
            found = sql.execute("SELECT number FROM pictures WHERE id = ?", (packed(id),)).fetchone() if id else None
            yield number, name, *facts, found[0] if found else id and packed(id), failed

    sql.executemany("INSERT INTO paths VALUES (?, ?, ?, ?, ?, ?, ?)", paths())
    rows = ((number, root, path) for (root, path), number in folders.items())
    sql.executemany("INSERT INTO folders VALUES (?, ?, ?)", rows)
