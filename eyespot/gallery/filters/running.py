"""Which rows of parquet files match a condition, found by DuckDB in a connection that reads nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.filters.parsing import QUOTING, find_column, first_line, name_in_sql, sealed
from eyespot.gallery.row_store import open_rows, plain_type
from eyespot.types import EyespotError, Mask, Progress, UsageError, no_progress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Condition:
    """A condition that was checked: SQL made by this package, and the columns it asks for."""

    sql: str
    columns: tuple[str, ...]


_HIDDEN = ("live", "roots")  # the gallery's own bookkeeping
_SCALARS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *(
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "VARCHAR",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP_S",
        "TIMESTAMP_MS",
        "TIMESTAMP_NS",
    ),
)


class FileShape(NamedTuple):
    """How many rows a table has, and its columns with their types."""

    rows: int
    columns: tuple[tuple[str, str], ...]


def columns_of(files: Sequence[Path]) -> dict[str, str]:
    """What a filter may ask for: names and DuckDB types of the plain columns in any of these parquet files.

    `path` is the first path of a picture. Raises EyespotError if a file cannot be read.
    """
    return {name: kind for name, (kind, _) in _sources(kinds_of(files)).items()}


def kinds_of(files: Sequence[Path]) -> dict[str, str]:
    """The DuckDB type of every column in any of the files. Raises EyespotError if one cannot be read."""
    first = {shape.columns: file for file, shape in zip(reversed(files), reversed(_shapes(files)), strict=True)}
    different = [file for file in files if file in set(first.values())]
    return dict(_kinds(tuple(_names(different)), tuple(_stamps(different)))) if files else {}


@lru_cache(16)
def _kinds(names: tuple[str, ...], _stamps: tuple[tuple[int, int], ...]) -> dict[str, str]:
    import duckdb

    try:
        with sealed(names) as connection:
            rows = connection.execute(f"DESCRIBE SELECT * FROM {_UNITED}", [list(names)]).fetchall()
    except duckdb.Error as error:
        raise _unreadable(error) from error
    return {name: kind for name, kind, *_ in rows}


def mask(
    files: Sequence[Path], condition: Condition, seconds: float | None = None, progress: Progress = no_progress
) -> Mask:
    """One flag per row, (rows,), in the order of the files and of the rows inside them; NULL counts as no match.

    Groups of rows whose statistics rule out a match are not read. The progress is in per cent.
    Raises UsageError if the condition does not fit the data or takes longer than `seconds`; None: as long as it takes.
    """
    masks = file_masks(files, condition, kinds_of(files), seconds, progress)
    return np.concatenate([np.zeros(0, np.bool_), *masks])


def file_masks(
    files: Sequence[Path],
    condition: Condition,
    kinds: Mapping[str, str],
    seconds: float | None = None,
    progress: Progress = no_progress,
) -> list[Mask]:
    """The same for each file, of some files of a gallery whose columns have these types: what one lacks is NULL."""
    if not files:
        return []
    sources, shapes = _sources(kinds), _shapes(files)
    for column in condition.columns:
        find_column(column, list(sources))
    starts = np.cumsum([0, *(shape.rows for shape in shapes)])  # (files + 1,)
    with sealed(_names(files)) as connection:
        table = _table(files, kinds, len({shape.columns for shape in shapes}) > 1)
        query = _Query(connection, _names(files), table, condition, sources)
        find = _flags if {*_NUMBERS}.intersection(map(str.casefold, kinds)) else _hits
        flags = _answered(partial(find, query, starts), connection, seconds, progress)
    return np.split(flags, starts[1:-1])


class _Query(NamedTuple):
    connection: DuckDBPyConnection
    names: list[str]
    table: str  # SQL
    condition: Condition
    sources: Mapping[str, tuple[str, str]]

    @property
    def columns(self) -> list[str]:
        """Those that the condition asks for, as SQL."""
        used = {find_column(column, list(self.sources)) for column in self.condition.columns}
        return [f"{self.sources[column][1]} AS {name_in_sql(column)}" for column in sorted(used)]


def _table(files: Sequence[Path], kinds: Mapping[str, str], different: bool) -> str:
    """SQL for the rows of some files with the columns of all; files of one shape need not be compared."""
    plain = {*_NUMBERS}.isdisjoint(map(str.casefold, kinds))
    numbers = (", file_row_number = true", ", file_index") if plain else ("", "")
    united = ", union_by_name = true" if different else ""
    rows = f"SELECT *{numbers[1]} FROM read_parquet(?{united}{numbers[0]})"
    if (own := kinds_of(files)) == kinds:
        return rows
    typed = [f"NULL::{kind} AS {name_in_sql(name)}" for name, kind in kinds.items() if own.get(name) != kind]
    return f"{rows} UNION ALL BY NAME SELECT {', '.join(typed)} WHERE false"


def _flags(query: _Query, _starts: NDArray[np.int64]) -> Mask:
    """A flag of every row, in order: where a column has a name that DuckDB gives to its numbers of rows."""
    columns = ", ".join(query.columns) or "1"
    sql = f"SELECT ({query.condition.sql}) IS TRUE AS hit FROM (SELECT {columns} FROM ({query.table}))"
    return np.asarray(query.connection.execute(sql, [query.names]).fetchnumpy()["hit"], np.bool_)  # (rows,)


def _hits(query: _Query, starts: NDArray[np.int64]) -> Mask:
    """The rows that match: their numbers, in batches, for all of them at once would be sixteen times the flags."""
    rows = f"SELECT {', '.join([*_NUMBERS, *query.columns])} FROM ({query.table})"
    sql = f"SELECT {', '.join(_NUMBERS)} FROM ({rows}) WHERE ({query.condition.sql})"
    hits: Mask = np.zeros(int(starts[-1]), np.bool_)
    for batch in query.connection.sql(sql, params=[query.names]).to_arrow_reader(_BATCH):
        file, row = (np.from_dlpack(column).astype(np.int64) for column in batch.columns)
        hits[starts[file] + row] = True
    return hits


_NUMBERS = ("file_index", "file_row_number")  # which DuckDB gives; a column of such a name would hide them
_BATCH = 1 << 16  # rows
_UNITED = "read_parquet(?, union_by_name = true)"


def _names(files: Sequence[Path]) -> list[str]:
    return [str(file.absolute()) for file in files]


def _stamps(files: Sequence[Path]) -> list[tuple[int, int]]:
    """When each file was written, and its bytes."""
    try:
        return [(status.st_mtime_ns, status.st_size) for status in (file.stat() for file in files)]
    except OSError as error:
        raise _unreadable(error) from error


def _shapes(files: Sequence[Path]) -> list[FileShape]:
    return [_shape(file, stamp) for file, stamp in zip(files, _stamps(files), strict=True)]


@lru_cache(1 << 15)
def _shape(file: Path, _stamp: tuple[int, int]) -> FileShape:
    """Read once, and from the smaller file beside the table where there is one: the end of a large table takes long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (rows := open_rows(file.parent)) is not None:
        return FileShape(len(rows), tuple((field.name, str(plain_type(field.type))) for field in rows.schema))
    try:
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(error) from error
    return FileShape(metadata.num_rows, tuple((field.name, str(field.type)) for field in schema))


def _unreadable(error: Exception) -> EyespotError:
    return EyespotError(f"the gallery's facts cannot be read: {first_line(str(error))}; restore them or index again")


def _sources(kinds: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The columns that a filter may ask for: type, and the expression that reads it."""
    plain = {name: (kind, name_in_sql(name)) for name, kind in kinds.items() if kind.split("(")[0] in _SCALARS}
    path = {"path": ("VARCHAR", '"paths"[1]')} if kinds.get("paths") == "VARCHAR[]" else {}
    shown = {name: source for name, source in plain.items() if name.casefold() not in (*_HIDDEN, *path)}
    return path | shown


def _answered(
    find: Callable[[], Mask], connection: DuckDBPyConnection, seconds: float | None, progress: Progress
) -> Mask:
    """What is found within so many seconds; the question has a thread of its own, so that Ctrl-C ends it at once."""
    import duckdb

    until = time.monotonic() + (math.inf if seconds is None else seconds)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(find)
        try:
            while not wait([answer], max(0.0, min(0.5, until - time.monotonic()))).done:
                if time.monotonic() >= until:
                    raise UsageError(f"the filter took longer than {seconds:g} seconds; make it simpler")
                progress("filtering", max(0, int(connection.query_progress())), 100)
            return answer.result()
        except duckdb.IOException as error:
            raise _unreadable(error) from error
        except duckdb.Error as error:
            raise UsageError(f"the filter does not fit the data: {first_line(str(error))}; {QUOTING}") from error
        finally:
            while not answer.done():  # again and again: it may not have begun
                connection.interrupt()
                wait([answer], 0.05)
