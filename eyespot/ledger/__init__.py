"""The ledger: one SQLite file that remembers what is done, what failed and why, through a kill at any moment.

Every room that keeps a record brings its own tables (`CREATE TABLE IF NOT EXISTS …`) and shares this file. It must
lie on a local disk: SQLite's locks are not to be trusted on network file systems.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eyespot.types import EyespotError

WAIT = 60.0  # seconds for another program to finish what it writes


def connect(path: Path, schema: str = "") -> sqlite3.Connection:
    """Open or create the ledger at `path` with the tables of `schema`; commits are on disk when they return.

    Raises `EyespotError` if the file is there and is no ledger, `sqlite3.OperationalError` if the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(schema)
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        raise EyespotError(
            f"{path} cannot be used as a ledger ({error}); move it away and index again, it is made anew"
        ) from error
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; of programs that do so at the same moment SQLite turns away all but one."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or none of it, also through SIGKILL."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
