"""Set work over tens of millions of rows: one DuckDB with bounded memory, tables that go to the disk whole."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import put_file
from eyespot.types import EyespotError, UsageError

GIB = 1 << 30
_ROW_GROUP = 122_880  # DuckDB's own; a tail of millions of rows still sorts within the limit


class Tables:
    """A DuckDB of its own that spills to `spill` what does not fit into `memory` GiB."""

    def __init__(self, spill: Path, memory: float = 3.0, threads: int = 2) -> None:
        import duckdb

        if not 0.25 <= memory < math.inf or threads < 1:
            raise UsageError(f"the work needs 0.25 GiB of memory or more and a thread, not {memory:g} and {threads}")
        shutil.rmtree(spill, ignore_errors=True)  # what a killed run left
        spill.mkdir(parents=True)
        self._error = duckdb.Error
        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{int(memory * 1024)}MiB",
                "threads": threads,
                "temp_directory": str(spill),
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
        self._connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """End it; its spilled data go with it."""
        self._connection.close()

    def run(self, sql: str) -> Any:
        """Run a statement; `EyespotError` with DuckDB's reason if that fails."""
        try:
            return self._connection.execute(sql)
        except self._error as error:
            text = (str(error).splitlines() or [type(error).__name__])[0][:300]
            raise EyespotError(f"the tables cannot be made: {text}") from error

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return list(self.run(sql).fetchall())

    def number(self, sql: str) -> int:
        """The one number that a query gives."""
        return int(self.rows(sql)[0][0])

    def batches(self, sql: str, rows: int = 1 << 18) -> Iterator[Any]:
        """The rows of a query as Arrow record batches, a few at a time in memory."""
        return iter(self._connection.sql(sql).to_arrow_reader(rows))

    def know(self, name: str, columns: Mapping[str, Iterable[Any]], types: Mapping[str, Any] | None = None) -> None:
        """Make a small table of Python's values known under a name; text unless `types` says otherwise."""
        import pyarrow as pa

        kinds = {column: (types or {}).get(column, pa.string()) for column in columns}
        table = pa.table({column: pa.array(list(values), kinds[column]) for column, values in columns.items()})
        self._connection.register(f"_{name}", table)
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM _{name}")
        self._connection.unregister(f"_{name}")

    def write(self, sql: str, path: Path) -> None:
        """Write the rows of a query as a parquet file, whole or not at all."""
        temporary = path.with_name(f".{path.name}.part")
        try:
            options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP}"
            self.run(f"COPY ({sql}) TO {quoted(temporary)} ({options})")
            put_file(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def opened(spill: Path, memory: float = 3.0, threads: int = 2) -> Iterator[Tables]:
    """Tables for a block, whose spilled data are removed at its end."""
    tables = Tables(spill, memory, threads)
    try:
        yield tables
    finally:
        tables.close()
        shutil.rmtree(spill, ignore_errors=True)


def rejects(tables: Tables) -> dict[str, Any]:
    """Lines that are not rows: the number of each kind, and the first of them."""
    exists = tables.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'")
    if not exists:
        return {}
    kinds = tables.rows(
        "SELECT lower(error_type::VARCHAR), count(DISTINCT line) FROM reject_errors GROUP BY 1 ORDER BY 1"
    )
    first = tables.rows("SELECT min(line) FROM reject_errors")[0][0]
    tables.run("TRUNCATE reject_errors")
    return {"lines": dict(kinds), "first": first} if kinds else {}


def quoted(value: object) -> str:
    """A text or path as SQL writes it."""
    return "'" + str(value).replace("'", "''") + "'"


def quote_name(column: str) -> str:
    """A column's name as SQL writes it."""
    return '"' + column.replace('"', '""') + '"'


def parquet(path: Path) -> str:
    """A parquet file as a table of SQL."""
    return f"read_parquet({quoted(path)})"


def select(columns: Mapping[str, str], table: str) -> str:
    """A table of SQL with these columns, each by its name and what it is made of."""
    return f"(SELECT {', '.join(f'{made} AS {quote_name(name)}' for name, made in columns.items())} FROM {table})"


def real(text: str) -> str:
    """An SQL text as a number; NULL for other texts."""
    return f"TRY_CAST({text} AS DOUBLE)"


def whole(text: str) -> str:
    """An SQL text as a whole number; NULL for other texts."""
    return f"TRY_CAST({text} AS INTEGER)"
