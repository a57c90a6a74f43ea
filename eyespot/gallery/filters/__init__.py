"""Which pictures a search may find: a condition over the gallery's facts, such as `year(taken) = 2021`.

A condition comes in SQL, from `checked`, or in a plain form: `after`, `before`, `near`, `label`. Neither can read
files, change settings, or build a value much larger than what goes in, so memory stays bounded although DuckDB's own
limit can be passed; a server that filters for strangers still sets RLIMIT_AS for its process as the last wall.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eyespot.gallery.filters.parsing import (
    QUOTING,
    find_column,
    first_line,
    name_in_sql,
    rewritten,
    sealed,
    text_in_sql,
)
from eyespot.gallery.row_store import open_rows, plain_type
from eyespot.types import EyespotError, Mask, Progress, UsageError, no_progress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HIDDEN = ("live", "roots")  # the gallery's own bookkeeping
_FLOATS = ("FLOAT", "DOUBLE")
_SCALARS = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE DECIMAL VARCHAR
    DATE TIME TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS
""".split()  # noqa: SIM905


@dataclass(frozen=True)
class Condition:
    """A condition that was checked: SQL made by this package, its columns, and what must hold of some by itself."""

    sql: str
    columns: tuple[str, ...]
    bounds: tuple[tuple[str, str], ...] = ()  # columns and SQL


def checked(expression: str, columns: Sequence[str]) -> Condition:
    """A SQL condition over these columns, parsed and written again from its harmless parts.

    Column names are found in upper or lower case. Raises UsageError in one sentence for everything else.
    """
    return Condition(*rewritten(expression, columns))


# -- conditions in plain forms ------------------------------------------------------------------------------


def after(date: str) -> Condition:
    """Taken at the first moment of this time or later: `2021`, `2021-05`, `2021-05-31` or `2021-05-31T18:02`."""
    return Condition(f"\"taken\" >= TIMESTAMP '{_moment(date)}'", ("taken",))


def before(date: str) -> Condition:
    """Taken before the first moment of this time: `after` 2020 with `before` 2021 is the year 2020."""
    return Condition(f"\"taken\" < TIMESTAMP '{_moment(date)}'", ("taken",))


def undated() -> Condition:
    """Nothing says when it was taken."""
    return Condition('"taken" IS NULL', ("taken",))


def near(latitude: float, longitude: float, km: float) -> Condition:
    """Taken within `km` kilometres of a place, on a sphere of the Earth's mean radius (haversine, 6371.0088 km)."""
    if not (abs(latitude) <= 90 and abs(longitude) <= 180 and 0 <= km < math.inf):
        raise UsageError("a place is LATITUDE,LONGITUDE,KM in degrees and kilometres, such as -33.45,-70.67,25")
    where = {"lat": f"({latitude!r})", "lon": f"({longitude!r})", "km": repr(float(km))}
    return Condition(_NEAR.format(**where), ("latitude", "longitude"))


# The CASE keeps infinities and nonsense of imported tables from sin(), which would end the whole search.
_NEAR = (
    'CASE WHEN "latitude" BETWEEN -90 AND 90 AND "longitude" BETWEEN -360 AND 360 THEN'
    ' 2 * 6371.0088 * asin(sqrt(least(1.0, pow(sin(radians("latitude" - {lat}) / 2), 2)'
    ' + cos(radians({lat})) * cos(radians("latitude")) * pow(sin(radians("longitude" - {lon}) / 2), 2)))) <= {km} END'
)


def fold_case(text: str) -> str:
    """A text as `label` compares it: each letter for itself, as DuckDB's lower does, without Python's final sigma."""
    return text.lower() if text.isascii() else "".join("i" if one == "İ" else one.lower() for one in text)


def label(column: str, value: str) -> Condition:
    """A column holds this value: as a number in a column of numbers, else as text, upper and lower case alike."""
    name = name_in_sql(column)
    as_text = f"lower(CAST({name} AS VARCHAR)) = lower({text_in_sql(value)})"
    if not re.fullmatch(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", value):
        as_number = None
    else:
        same = f"TRY_CAST({name} AS DOUBLE) = {float(value)!r}"
        whole = re.fullmatch(r"[+-]?[0-9]{1,30}", value)  # beyond 2**53 neighbouring whole numbers are one double
        as_number = f"{same} AND TRY_CAST({name} AS HUGEINT) = {int(value)}" if whole else same
    either = (
        as_text if as_number is None else f"CASE WHEN typeof({name}) = 'VARCHAR' THEN {as_text} ELSE {as_number} END"
    )
    return Condition(either, (column,))


def all_of(*conditions: Condition) -> Condition:
    """Every one of these holds; without any, every picture passes."""
    columns = dict.fromkeys(column for condition in conditions for column in condition.columns)
    bounds = tuple(bound for condition in conditions for bound in condition.bounds)
    return Condition(" AND ".join(f"({condition.sql})" for condition in conditions) or "true", tuple(columns), bounds)


def _moment(date: str) -> str:
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?)?)?", date):
        with suppress(ValueError):  # the form is right and the day does not exist
            return datetime.fromisoformat(date + "0000-01-01T00:00:00"[len(date) :]).isoformat(" ")
    raise UsageError(
        f"{date!r} is not a date; write 2021, 2021-05, 2021-05-31 or 2021-05-31T18:02, in the camera's local time"
    )


# -- which rows match, found by DuckDB in a connection that reads nothing else --------------------------------------


def columns_of(files: Sequence[Path]) -> dict[str, str]:
    """What a filter may ask for: names and DuckDB types of the plain columns in any of these parquet files.

    `path` is the first path of a picture. Raises EyespotError if a file cannot be read.
    """
    return {name: kind for name, (kind, _) in _sources(kinds_of(files)).items()}


def kinds_of(files: Sequence[Path]) -> dict[str, str]:
    """The DuckDB type of every column in any of the files. Raises EyespotError if one cannot be read."""
    first = {columns: file for file, (_, columns) in zip(reversed(files), reversed(_shapes(files)), strict=True)}
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
    sources, shapes, names = _sources(kinds), _shapes(files), _names(files)
    starts = np.cumsum([0, *(rows for rows, _ in shapes)])  # (files + 1,)
    used = sorted({find_column(column, list(sources)) for column in condition.columns})
    columns = [f"{sources[column][1]} AS {name_in_sql(column)}" for column in used]
    numbered = {*_NUMBERS}.isdisjoint(map(str.casefold, kinds))
    with sealed(names) as connection:
        rows = _table(files, kinds, different=len({columns for _, columns in shapes}) > 1, numbered=numbered)
        bounds = [sql for column, sql in condition.bounds if column in sources and sources[column][0] in _FLOATS]

        def find() -> Mask:
            if not numbered:
                sql = f"SELECT ({condition.sql}) IS TRUE AS hit FROM (SELECT {', '.join(columns) or '1'} FROM ({rows}))"
                return np.asarray(connection.execute(sql, [names]).fetchnumpy()["hit"], np.bool_)
            # Numbers of rows that match, in batches: for all of them at once they would be sixteen times the flags
            inner = f"SELECT {', '.join([*_NUMBERS, *columns])} FROM ({rows}) WHERE {' AND '.join(['true', *bounds])}"
            sql = f"SELECT {', '.join(_NUMBERS)} FROM ({inner}) WHERE ({condition.sql})"
            hits: Mask = np.zeros(int(starts[-1]), np.bool_)
            for batch in connection.sql(sql, params=[names]).to_arrow_reader(_BATCH):
                file, row = (np.from_dlpack(column).astype(np.int64) for column in batch.columns)
                hits[starts[file] + row] = True
            return hits

        flags = _answered(find, connection, seconds, progress)
    return np.split(flags, starts[1:-1])


def _table(files: Sequence[Path], kinds: Mapping[str, str], *, different: bool, numbered: bool) -> str:
    """SQL for the rows of some files with the columns of all; files of one shape need not be compared."""
    numbers = (", file_row_number = true", ", file_index") if numbered else ("", "")
    united = ", union_by_name = true" if different else ""
    rows = f"SELECT *{numbers[1]} FROM read_parquet(?{united}{numbers[0]})"
    if (own := kinds_of(files)) == kinds:
        return rows
    typed = [f"NULL::{kind} AS {name_in_sql(name)}" for name, kind in kinds.items() if own.get(name) != kind]
    return f"{rows} UNION ALL BY NAME SELECT {', '.join(typed)} WHERE false"


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


def _shapes(files: Sequence[Path]) -> list[tuple[int, tuple[tuple[str, str], ...]]]:
    """How many rows each table has, and its columns with their types."""
    return [_shape(file, stamp) for file, stamp in zip(files, _stamps(files), strict=True)]


@lru_cache(1 << 15)
def _shape(file: Path, _stamp: tuple[int, int]) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Read once, and from the smaller file beside the table where there is one: the end of a large table takes long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (rows := open_rows(file.parent)) is not None:
        return len(rows), tuple((field.name, str(plain_type(field.type))) for field in rows.schema)
    try:
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(error) from error
    return metadata.num_rows, tuple((field.name, str(field.type)) for field in schema)


def _unreadable(error: Exception) -> EyespotError:
    return EyespotError(f"the gallery's facts cannot be read: {first_line(str(error))}; restore them or index again")


def _sources(kinds: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The columns that a filter may ask for: type, and the expression that reads it."""
    plain = {name: (kind, name_in_sql(name)) for name, kind in kinds.items() if kind.split("(")[0] in _SCALARS}
    for name, (kind, read) in plain.items():
        if kind in _FLOATS:  # NaN is missing; statistics without it make `isnan` false
            plain[name] = kind, f"CASE WHEN isfinite({read}) OR isinf({read}) THEN {read} END"
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
