"""Rows of a list of pictures in any format: delimited text, JSON lines, parquet, COCO JSON; and sidecars in tars.

Each row is a file, its facts and the line where they stand, whatever the format. Malformed rows are named with their
line, and the good rest is read.
"""

from __future__ import annotations

import csv
import json
import math
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from eyespot.photos.found import Labels, Unreadable, is_utf8, reason
from eyespot.storage.text_files import lines_of

FILE_COLUMNS = ("file_name", "filename", "file", "path", "filepath", "image", "image_path")
MEASURED = frozenset(
    {"id", "live", "roots", "paths", "path", "size", "mtime", "width", "height", "format", "rank", "score"}
)
MAX_FIELD = 1 << 20  # characters
MOST_COLUMNS = 1000  # of a list: each is one of every table of the gallery
_TOO_WIDE = "has {:,} columns, more than 1,000; leave out those that nobody filters by"
LABELS_LOST = "labels cannot be read: "  # how the reason of a file that gives no labels as a whole begins
_HALF = "holds half a character (a lone surrogate) or a NUL"
_BATCH = 4096  # rows of parquet
_BUFFER = 1 << 20  # bytes of a parquet column that is being read; without it a column's whole chunk would be

RawRow = tuple[int, str, dict[str, Any] | str]
"""A line (in COCO JSON an image by its place), the column that names its file, and the row or what is wrong with it."""


def label_rows(place: Path, name: str) -> Iterator[Labels | Unreadable]:
    """Rows of a csv, tsv, jsonl or parquet file with a column naming the picture (`file_name`, …), or of COCO JSON.

    Paths are relative to the folder of the file. A row that cannot be used is `name:line`, the file `name`."""
    lost = ""
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            raise OSError("not a regular file")
        for line, column, row in _rows_of(place):
            labels = row if isinstance(row, str) else label_row(row, column)
            yield Unreadable(f"{name}:{line}", labels) if isinstance(labels, str) else labels
    except UnicodeDecodeError:
        lost = "not UTF-8; save it as UTF-8 and run again"
    except OSError as error:
        lost = reason(error)
    except (csv.Error, ValueError) as error:
        lost = str(error).partition("\n")[0]
    if lost:
        yield Unreadable(name, LABELS_LOST + lost)


def label_row(row: dict[str, Any], column: str) -> Labels | str:
    """A row whose `column` names the picture; the rest of it are its labels. A text says what is wrong with it."""
    file, facts = row.pop(column), _label_columns(row)
    if not isinstance(file, str) or not file.strip():
        return f"has an empty {column}"
    if len(row) > MOST_COLUMNS:
        return _TOO_WIDE.format(len(row))
    return Labels(file.strip(), facts) if "\0" not in file and _can_be_stored({column: file, **facts}) else _HALF


def sidecar(suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any] | str | None:
    """What a webdataset sidecar (`.json`, `.txt`, `.cls`) says of its picture, or why nothing; None if it is none."""
    if suffix not in (".json", ".txt", ".cls"):
        return None
    if member.size > MAX_FIELD:
        return f"longer than the {MAX_FIELD >> 20} MiB that labels may be"
    file = archive.extractfile(member)
    text = file.read().decode("utf-8", "replace").strip() if file else ""
    row = _object(text) if suffix == ".json" else {suffix.removeprefix(".").replace("txt", "text"): text}
    if row is None:
        return "is not a JSON object"
    facts = _label_columns(row)
    return facts if _can_be_stored(facts) else _HALF


# -- columns and values ---------------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """The narrowest of `int`, `float`, `text` that holds a label value."""
    if isinstance(value, bool):
        return "text"
    if isinstance(value, int):
        return "int" if abs(value) < 2**63 else "text"
    if isinstance(value, float):
        return "float"
    text = str(value)
    body = text[1:] if text[:1] == "-" else text
    if not body.isascii() or not body.replace(".", "", 1).isdigit() or len(body) > 15:
        return "text"
    if "." in body:
        return "float"
    # a leading zero is part of a code ("007"), not of a number
    return "text" if len(body) > 1 and body[0] == "0" else "int"


def wider(one: str, other: str) -> str:
    """The kind that holds both."""
    order = ("int", "float", "text")
    return order[max(order.index(one), order.index(other))]


def _can_be_stored(facts: dict[str, Any]) -> bool:
    texts = [*facts, *(value for value in facts.values() if isinstance(value, str))]
    return is_utf8("".join(texts)) and not any("\0" in name for name in facts)


def _label_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Scalars only, without what eyespot says itself; the first of two names that differ in case stays."""
    facts: dict[str, Any] = {}
    taken = set(MEASURED)
    for name, value in row.items():
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, str):
            value = value.strip()
        # Empty text, NaN, lists and tables say nothing
        says = math.isfinite(value) if isinstance(value, float) else isinstance(value, int) or bool(value)
        if name and name.casefold() not in taken and says and isinstance(value, str | int | float):
            facts[name] = value
            taken.add(name.casefold())
    return facts


class _NoFileColumn(ValueError):
    """A table, or a row of JSON lines, does not name its pictures."""


def _file_column(names: list[str]) -> str:
    """The column that names the picture; ValueError also for a table of more columns than a gallery takes."""
    if len(names) > MOST_COLUMNS:
        raise ValueError(_TOO_WIDE.format(len(names)))
    lowered = [name.casefold() for name in names]
    if found := [names[lowered.index(name)] for name in FILE_COLUMNS if name in lowered]:
        return found[0]
    there = ", ".join(names[:12]) or "none"
    raise _NoFileColumn(f"has no column file_name that names the picture; there are: {there}")


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# -- formats --------------------------------------------------------------------------------------------------------


def _rows_of(place: Path) -> Iterator[RawRow]:
    """The rows of a file by its ending; of any other kind it is delimited text."""
    if place.suffix.lower() == ".jsonl":
        yield from _json_lines(place)
    elif place.suffix.lower() == ".json":
        from eyespot.photos.coco_json import images_of

        yield from ((number, "file_name", image) for number, image in images_of(place))
    elif place.suffix.lower() == ".parquet":
        column = _file_column([*_parquet_columns(place)])
        yield from ((line, column, row) for line, row in enumerate(parquet_rows(place), 1))
    else:
        with place.open(encoding="utf-8-sig", newline="") as file:
            names, rows = read_delimited(file)
            column = _file_column(names)
            yield from ((line, column, row) for line, row in rows)


def _json_lines(place: Path) -> Iterator[RawRow]:
    with place.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(lines_of(file), 1):
            if (row := _object(text)) is not None:
                try:
                    yield line, _file_column([*row]), row
                except _NoFileColumn as error:
                    yield line, "", str(error)
            elif text.strip():
                yield line, "", "is not a JSON object"


def parquet_rows(place: Path) -> Iterator[dict[str, Any]]:
    """Plain columns only, in the forms that JSON has, and the paths of pictures; ValueError where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _parquet_columns(place)
    try:
        with pq.ParquetFile(place, buffer_size=_BUFFER) as file:
            # Rows that differ take a byte each, at the least
            if (rows := file.metadata.num_rows) > 100_000 + 10 * (size := place.stat().st_size):
                raise ValueError(f"it unfolds to {rows:,} rows of {size:,} bytes")
            for batch in file.iter_batches(_BATCH, columns=[*columns.values()]):
                values = [_plain(batch.column(batch.schema.names.index(name))).to_pylist() for name in columns]
                yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _parquet_columns(place: Path) -> dict[str, str]:
    """The plain columns, and what is read for each: its own name, or `image.path` of Hugging Face's structs with bytes.

    Raises ValueError for a file that is not parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def is_text(kind: Any) -> bool:
        return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)

    columns: dict[str, str] = {}
    try:
        schema = pq.read_schema(place)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    moments = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
    plain = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, *moments)
    for field in schema:
        kind: Any = field.type
        if field.name in columns:
            continue
        if pa.types.is_struct(kind):
            at = kind.get_field_index("path")
            if at >= 0 and is_text(kind.field(at).type):
                columns[field.name] = f"{field.name}.path"
            continue
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if is_text(value) or any(test(value) for test in plain):
            columns[field.name] = field.name
    return columns


def _plain(column: Any) -> Any:
    """Text, numbers and truth values; moments in the form of ISO 8601."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_struct(column.type):
        column = column.field(0)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type) or pa.types.is_floating(column.type):
        return column.cast(pa.float64(), safe=False)
    if not pa.types.is_temporal(column.type):
        return column
    text = pc.replace_substring(column.cast(pa.string()), " ", "T")
    return pc.replace_substring_regex(text, r"\.0+(Z|[+-]\d{4})?$", r"\1")


DelimitedRow = tuple[int, dict[str, str] | str]
"""A line, and its fields by name or what is wrong with it."""


def read_delimited(file: IO[str]) -> tuple[list[str], Iterator[DelimitedRow]]:
    """The names of the columns of delimited text, as spreadsheets and field programs write it, and its rows.

    The header decides what separates fields, or a line `sep=;` above it, as Excel writes one.
    """
    csv.field_size_limit(MAX_FIELD)
    lines = lines_of(file)
    header, above = next(lines, ""), 1
    delimiter = max(",;\t", key=header.count)
    if header.lower().startswith("sep="):
        delimiter, header, above = header[4:5], next(lines, ""), 2
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]

    def rows() -> Iterator[DelimitedRow]:
        reader = csv.reader(lines, delimiter=delimiter)
        for row in filter(None, reader):
            wrong = f"has {len(row)} fields where the header has {len(names)}"
            yield reader.line_num + above, dict(zip(names, row, strict=True)) if len(row) == len(names) else wrong

    return names, rows()
