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
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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
from eyespot.types import EyespotError, Mask, Progress, UsageError, no_progress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Condition:
    """A condition that was checked: SQL made by this package, and the columns it asks for."""

    sql: str
    columns: tuple[str, ...]


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
    return Condition(" AND ".join(f"({condition.sql})" for condition in conditions) or "true", tuple(columns))


def _moment(date: str) -> str:
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?)?)?", date):
        try:
            return datetime.fromisoformat(date + "0000-01-01T00:00:00"[len(date) :]).isoformat(" ")
        except ValueError:
            pass  # the form is right and the day does not exist
    raise UsageError(
        f"{date!r} is no date; write 2021, 2021-05, 2021-05-31 or 2021-05-31T18:02, in the camera's local time"
    )


# -- running it ---------------------------------------------------------------------------------------------

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


def columns_of(files: Sequence[Path]) -> dict[str, str]:
    """What a filter may ask for: names and DuckDB types of the plain columns in any of these parquet files.

    `path` is the first path of a picture. Raises EyespotError if a file cannot be read.
    """
    if not files:
        return {}
    with sealed(_names(files)) as connection:
        return {name: kind for name, (kind, _) in _sources(_schema(connection, files)).items()}


def mask(
    files: Sequence[Path], condition: Condition, seconds: float | None = None, progress: Progress = no_progress
) -> Mask:
    """One flag per row, (rows,), in the order of the files and of the rows inside them; NULL counts as no match.

    Groups of rows whose statistics rule out a match are not read. The progress is in per cent.
    Raises UsageError if the condition does not fit the data or takes longer than `seconds`; None: as long as it takes.
    """
    if not files:
        return np.zeros(0, np.bool_)
    with sealed(_names(files)) as connection:
        kinds = _schema(connection, files)
        sources = _sources(kinds)
        for column in condition.columns:
            find_column(column, list(sources))
        hidden = {*_NUMBERS}.intersection(map(str.casefold, kinds))
        find = partial(_flags if hidden else _hits, connection, _names(files), condition, sources)
        return _answered(find, connection, seconds, progress)


def _flags(
    connection: DuckDBPyConnection, names: list[str], condition: Condition, sources: Mapping[str, tuple[str, str]]
) -> Mask:
    """A flag of every row, in order: where a column has a name that DuckDB gives to its numbers of rows."""
    columns = ", ".join(f"{source} AS {name_in_sql(column)}" for column, (_, source) in sources.items())
    sql = f"SELECT ({condition.sql}) IS TRUE AS hit FROM (SELECT {columns} FROM {_PARQUET})"
    return np.asarray(connection.execute(sql, [names]).fetchnumpy()["hit"], np.bool_)  # (rows,)


def _hits(
    connection: DuckDBPyConnection, names: list[str], condition: Condition, sources: Mapping[str, tuple[str, str]]
) -> Mask:
    """The rows that match: their numbers, in batches, for all of them at once would be sixteen times the flags."""
    sizes = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [names]).fetchnumpy()["num_rows"]
    starts = np.cumsum([0, *sizes.astype(np.int64)])  # (files + 1,)
    columns = [f"{source} AS {name_in_sql(column)}" for column, (_, source) in sources.items()]
    rows = f"SELECT {', '.join([*_NUMBERS, *columns])} FROM {_NUMBERED}"
    sql = f"SELECT {', '.join(_NUMBERS)} FROM ({rows}) WHERE ({condition.sql})"
    hits: Mask = np.zeros(int(starts[-1]), np.bool_)
    for batch in connection.sql(sql, params=[names]).to_arrow_reader(_BATCH):
        file, row = (np.from_dlpack(column).astype(np.int64) for column in batch.columns)
        hits[starts[file] + row] = True
    return hits


_NUMBERS = ("file_index", "file_row_number")  # which DuckDB gives; a column of such a name would hide them
_BATCH = 1 << 16  # rows
_PARQUET = "read_parquet(?, union_by_name = true)"
_NUMBERED = "read_parquet(?, union_by_name = true, file_row_number = true)"


def _names(files: Sequence[Path]) -> list[str]:
    return [str(file.absolute()) for file in files]


def _schema(connection: DuckDBPyConnection, files: Sequence[Path]) -> dict[str, str]:
    """The type of every column in any of the files."""
    import duckdb

    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {_PARQUET}", [_names(files)]).fetchall()
    except duckdb.Error as error:
        raise EyespotError(
            f"the gallery's facts cannot be read: {first_line(str(error))}; restore them or index again"
        ) from error
    return {name: kind for name, kind, *_ in rows}


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
            raise EyespotError(f"the gallery's facts cannot be read: {first_line(str(error))}") from error
        except duckdb.Error as error:
            raise UsageError(f"the filter does not fit the data: {first_line(str(error))}; {QUOTING}") from error
        finally:
            while not answer.done():  # again and again: it may not have begun
                connection.interrupt()
                wait([answer], 0.05)
