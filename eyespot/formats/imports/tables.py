"""Tables of facts that came with somebody's vectors: parquet and CSV, read in batches, whatever their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute

from eyespot.gallery import hdf5
from eyespot.photos.labels import wider
from eyespot.types import EyespotError

Column: TypeAlias = Any  # a pyarrow array; its stubs know one type of each function
pc: Any = pyarrow.compute
BATCH = 1 << 16
_BUFFER = 1 << 20  # of a column that is being read; without it a column's whole chunk would be


class FactTable(Protocol):
    """A table: `kinds` maps its plain columns to `int`, `float`, `text`, or `` for one that holds nothing."""

    rows: int
    kinds: dict[str, str]
    others: list[str]  # columns that are lists, structures, bytes, or share a name
    lists: list[str]  # those of the others that are lists of text

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in order, at least with these columns."""
        ...


def facts_in(place: Path | None, rows: int) -> FactTable:
    """The table at a path by its suffix; for None one of `rows` rows that says nothing."""
    if place is None:
        return NoFacts(rows)
    if place.suffix.lower() in hdf5.SUFFIXES:
        return HdfFacts(place, rows)
    return CsvFacts(place) if place.suffix.lower() == ".csv" else ParquetFacts(place)


class NoFacts:
    """Rows of which nothing is known."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.kinds: dict[str, str] = {}
        self.others: list[str] = []
        self.lists: list[str] = []

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of one nameless, empty column."""
        for start in range(0, self.rows, BATCH):
            yield pa.RecordBatch.from_arrays([pa.nulls(min(BATCH, self.rows - start))], [""])


class HdfFacts:
    """The names of a file's rows, as a table of one column `image_id`."""

    def __init__(self, place: Path, rows: int) -> None:
        count = hdf5.count_names(place)
        self.place, self.rows = place, rows if count is None else count
        self.kinds = {} if count is None else {hdf5.NAME: "text"}
        self.others: list[str] = []
        self.lists: list[str] = []

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        if not self.kinds or not columns:
            yield from NoFacts(self.rows).batches(columns)
            return
        for part in hdf5.names(self.place, BATCH):
            yield pa.RecordBatch.from_arrays([pa.array(part, pa.string())], [hdf5.NAME])


class ParquetFacts:
    """The columns of a parquet file."""

    def __init__(self, place: Path) -> None:
        import pyarrow.parquet as pq

        self.place = place
        with _readable(place), pq.ParquetFile(place) as file:
            self.rows, schema = file.metadata.num_rows, file.schema_arrow
        found = {field.name: _kind(field.type) for field in schema if schema.get_field_index(field.name) >= 0}
        self.kinds = {name: kind for name, kind in found.items() if kind is not None}
        self.others = [name for name in dict.fromkeys(schema.names) if name not in self.kinds]
        self.lists = [name for name in self.others if name in found and _lists_text(schema.field(name).type)]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches with these columns."""
        import pyarrow.parquet as pq

        if not columns:
            yield from NoFacts(self.rows).batches(columns)
            return
        with _readable(self.place), pq.ParquetFile(self.place, buffer_size=_BUFFER) as file:
            for batch in file.iter_batches(BATCH, columns=list(columns)):
                batch.validate(full=True)  # text that is not UTF-8 would surface much later
                yield batch


class CsvFacts:
    """The columns of a CSV file; a column is a number if each of its values is."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.rows = 0
        self.others: list[str] = []
        self.lists: list[str] = []
        kinds: dict[str, str] = {}
        for batch in self.batches(()):
            self.rows += len(batch)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                kinds[name] = widest(kinds.get(name, ""), _kind_of_text(column))
        self.kinds = kinds

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches with all columns, as text."""
        from pyarrow import csv

        parse = csv.ParseOptions(newlines_in_values=True)
        with _readable(self.place):
            names = csv.open_csv(self.place, parse_options=parse).schema.names
            text = dict.fromkeys(names, pa.string())
            convert = csv.ConvertOptions(column_types=text, strings_can_be_null=True, null_values=[""])
            if len(text) < len(names):
                raise ValueError("two columns share a name")
            yield from csv.open_csv(self.place, parse_options=parse, convert_options=convert)


def widest(one: str, other: str) -> str:
    """The kind that holds both; `` is held by all."""
    return wider(one, other) if one and other else one or other


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
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


def _lists_text(type: pa.DataType) -> bool:
    return (pa.types.is_list(type) or pa.types.is_large_list(type)) and pa.types.is_string(type.value_type)


def _kind_of_text(column: Column) -> str:
    """As `labels.kind_of` does: a leading zero is part of a code (`007`), not of a number."""
    column = column.drop_null()
    if not len(column):
        return ""
    short = pc.less_equal(pc.utf8_length(pc.utf8_ltrim(column, "-")), 15)
    if _all(short, column, r"^-?(0|[1-9][0-9]*)$"):
        return "int"
    return "float" if _all(short, column, r"^-?([0-9]+\.[0-9]*|\.[0-9]+|0|[1-9][0-9]*)$") else "text"


def _all(short: Column, column: Column, pattern: str) -> bool:
    return bool(pc.all(pc.and_(short, pc.match_substring_regex(column, pattern))).as_py())
