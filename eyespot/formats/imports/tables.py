"""Tables of facts that came with somebody's vectors: parquet, delimited text and HDF5, read in batches of any size."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from eyespot.gallery import hdf5
from eyespot.photos.labels import kind_of, read_delimited, wider
from eyespot.types import EyespotError

Column: TypeAlias = Any  # a pyarrow array; its stubs know one type of each function
pc: Any = pyarrow.compute
BATCH = 1 << 16
_BUFFER = 1 << 20  # of a column that is being read; without it a column's whole chunk would be


@dataclass(frozen=True)
class FactTable:
    """A table: `kinds` maps its plain columns to `int`, `float`, `text`, or `` for one that holds nothing.

    read: its rows in batches with at least the columns that are asked for; others: columns that are lists, structures,
    bytes, or share a name; lists: those of the others that are lists of text.
    """

    rows: int
    kinds: dict[str, str]
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    others: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in order, at least with these columns; without any, batches of one nameless, empty column."""
        if columns:
            yield from self.read(columns)
            return
        for start in range(0, self.rows, BATCH):
            yield pa.RecordBatch.from_arrays([pa.nulls(min(BATCH, self.rows - start))], [""])


def facts_in(place: Path | None, rows: int) -> FactTable:
    """The table at a path by its suffix; for None one of `rows` rows that says nothing."""
    if place is not None and place.suffix.lower() not in hdf5.SUFFIXES:
        return _delimited(place) if place.suffix.lower() == ".csv" else _parquet(place)
    count = None if place is None else hdf5.count_names(place)
    if place is None or count is None:
        return FactTable(rows, {}, lambda _: iter(()))

    def read(_columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in hdf5.names(place, BATCH):
            yield pa.RecordBatch.from_arrays([pa.array(part, pa.string())], [hdf5.NAME])

    return FactTable(count, {hdf5.NAME: "text"}, read)


def _parquet(place: Path) -> FactTable:
    with _readable(place), pq.ParquetFile(place) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _readable(place), pq.ParquetFile(place, buffer_size=_BUFFER) as file:
            for batch in file.iter_batches(BATCH, columns=list(columns)):
                batch.validate(full=True)  # text that is not UTF-8 would surface much later
                yield batch

    found = {field.name: _kind(field.type) for field in schema if schema.get_field_index(field.name) >= 0}
    kinds = {name: kind for name, kind in found.items() if kind is not None}
    others = [name for name in dict.fromkeys(schema.names) if name not in kinds]
    listed = {one.name: one.type for one in schema if pa.types.is_list(one.type) or pa.types.is_large_list(one.type)}
    texts = {name for name, kind in listed.items() if name in found and pa.types.is_string(kind.value_type)}
    return FactTable(rows, kinds, read, others, [name for name in others if name in texts])


def _delimited(place: Path) -> FactTable:
    """A table as spreadsheets write it; a column is a number if each of its values is."""
    rows = 0
    kinds: dict[str, str] = {}
    for batch in _batches(place):
        rows += len(batch)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            values = () if kinds.get(name) == "text" else column.unique().drop_null().to_pylist()
            kinds[name] = reduce(widest, map(kind_of, values), kinds.get(name, ""))
    return FactTable(rows, kinds, lambda _: _batches(place))


def _batches(place: Path) -> Iterator[pa.RecordBatch]:
    """All columns, as text; empty cells are null."""
    with _readable(place), place.open(encoding="utf-8-sig", newline="") as file:
        names, lines = read_delimited(file)
        if len(set(names)) < len(names):
            raise ValueError("two columns share a name")
        while rows := list(islice(lines, BATCH)):
            cells: dict[str, list[str | None]] = {name: [] for name in names}
            for line, row in rows:
                if isinstance(row, str):
                    raise ValueError(f"line {line} {row}")
                for name, text in row.items():
                    cells[name].append(text or None)
            yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in cells.values()], names)


def widest(one: str, other: str) -> str:
    """The kind that holds both; `` is held by all."""
    return wider(one, other) if one and other else one or other


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EyespotError(f"{place} cannot be read ({reason}); fix it and import again") from error


def _kind(type: pa.DataType) -> str | None:
    if pa.types.is_dictionary(type):
        return _kind(type.value_type)
    if pa.types.is_null(type):
        return ""
    if pa.types.is_integer(type) and not pa.types.is_uint64(type):
        return "int"
    if pa.types.is_floating(type) or pa.types.is_decimal(type):
        return "float"
    return "text" if any(test(type) for test in _TEXTUAL) else None


_TEXTUAL = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *(pa.types.is_boolean, pa.types.is_uint64, pa.types.is_timestamp, pa.types.is_date, pa.types.is_time),
)
