"""A SQLite file that any number of threads read and write: one connection, one lock, whole changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Self

from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.types import EyespotError


class SqliteFile:
    """The file of a class that says in `what` what it holds, for errors, and in `schema` its tables."""

    what: str
    schema: str

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._sql = sqlite.connect(path, self.schema)
        except (sqlite3.Error, OSError) as error:
            raise EyespotError(f"{path} cannot hold {self.what} {trouble(error)}") from None
        self._lock = RLock()

    def close(self) -> None:
        """Let go of the file."""
        self._sql.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def select(self, statement: str, *values: object) -> list[Any]:
        """The rows of a query."""
        with self._lock, sqlite.whole(self.path):
            return self._sql.execute(statement, values).fetchall()

    def first(self, statement: str, *values: object) -> Any:
        """The first column of the first row of a query; None without a row."""
        rows = self.select(statement, *values)
        return rows[0][0] if rows else None

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each of these rows of values, all or none."""
        with self.transaction() as sql:
            sql.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block or none, with the connection; not to be nested.

        `EyespotError` where the disk is full or another program has the file.
        """
        try:
            with self._lock, sqlite.whole(self.path), sqlite.transaction(self._sql):
                yield self._sql
        except sqlite3.OperationalError as error:
            raise EyespotError(f"{self.what} in {self.path} cannot be changed {trouble(error)}") from None
