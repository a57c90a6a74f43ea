"""Set work over tens of millions of rows: one DuckDB with bounded memory, steps over its tables, and dates.

A step makes `kept.parquet` and `dropped.parquet`, by the number of the row:

    WORK/steps/02-filtered/kept.parquet       the rows that go on
                           dropped.parquet    number and reason of those that do not
                           notes.json         other results of the step
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from eyespot.pipelines import Context, Records, SqlStep, StepResult
from eyespot.storage.atomic import put_file, write_whole
from eyespot.storage.text_files import text_of
from eyespot.types import EyespotError, NothingFound, UsageError

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


KEPT_ROWS, DROPPED_ROWS, NOTES = "kept.parquet", "dropped.parquet", "notes.json"
TITLES = {  # shown while a step runs
    "read": "reading observations",
    "filtered": "date, place and grade",
    "aligned": "taxonomy",
    "photographed": "photos and licences",
    "grouped": "observation groups",
    "drawn": "drawing",
    "listed": "listing",
}


@dataclass(frozen=True)
class StepTables:
    """The database of a step, its folder, and the folders of the earlier steps that it reads."""

    tables: Tables
    folder: Path
    earlier: Mapping[str, Path]

    def rows(self, step: str) -> str:
        """The rows that an earlier step kept, as an SQL table."""
        return parquet(self.earlier[step] / KEPT_ROWS)

    def write(self, sql: str) -> None:
        """Keep every row of a query."""
        self.tables.write(sql, self.folder / KEPT_ROWS)
        self.tables.write("SELECT 0::BIGINT AS row, '' AS reason LIMIT 0", self.folder / DROPPED_ROWS)

    def split(self, sql: str) -> None:
        """Keep the rows of a query without a `reason`, and drop the others."""
        every = self.folder / "every.parquet"
        self.tables.write(sql, every)
        rows = parquet(every)
        self.tables.write(f"SELECT * EXCLUDE (reason) FROM {rows} WHERE reason IS NULL", self.folder / KEPT_ROWS)
        self.tables.write(f"SELECT row, reason FROM {rows} WHERE reason IS NOT NULL", self.folder / DROPPED_ROWS)
        every.unlink()


Work: TypeAlias = Callable[[StepTables], Mapping[str, Any]]
"""Leaves `kept.parquet` and `dropped.parquet` and returns the notes of the step."""


def table_work(work: Work, tables: Tables) -> SqlStep:
    """`work` as that of a step; the runner counts the rows of its tables.

    Raises `NothingFound` if the step before it kept nothing.
    """

    def run(records: Records, folder: Path, context: Context) -> int:
        earlier = {name: folder_of(output) for name, output in context.earlier.items()}
        if records.path is not None:
            before = folder_of(records)
            name = before.name.partition("-")[2]  # `filtered` of `02-filtered`
            earlier[name] = before
            if not len(records):
                dropped = tables.rows(f"SELECT reason, count(*) FROM {parquet(before / DROPPED_ROWS)} GROUP BY reason")
                reasons = [f"{reason} ({count:,})" for reason, count in most_first(dict(dropped)).items()]
                listed = ", ".join(reasons[:4]) or "none came"
                raise NothingFound(f"no observation is left after {TITLES[name]}: {listed}; ask for less")
        context.tell(TITLES[context.step], list(TITLES).index(context.step) + 1, len(TITLES))
        notes = json.dumps(work(StepTables(tables, folder, earlier)), ensure_ascii=False)
        write_whole(folder / NOTES, lambda file: file.write(notes.encode()))
        return 0 if records.path else tables.number(f"SELECT count(*) FROM {parquet(folder / KEPT_ROWS)}")

    return SqlStep(run, key="row")


def folder_of(records: Records) -> Path:
    """The folder of the step that kept these records."""
    assert records.path is not None
    return records.path.parent


def notes_of(step: StepResult) -> dict[str, Any]:
    """The notes of a finished step."""
    notes: dict[str, Any] = json.loads((step.folder / NOTES).read_text(encoding="utf-8"))
    return notes


def most_first(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons and counts, the most frequent first."""
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def know_days(tables: Tables) -> None:
    """Make `local_day(text, longitude)` and `date_fault(text, longitude)` known to SQL."""
    for macro in text_of(Path(__file__).with_name("days.sql")).split(";\n"):
        if macro.strip():
            tables.run(macro)
