"""Label columns beside the photos: `metadata.csv` as in the HF imagefolder layout, lists of paths, tar sidecars.

Malformed rows are named with their file and line; the good rest is read.
"""

from __future__ import annotations

import csv
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE_COLUMNS = ("file_name", "filename", "file", "path", "filepath", "image", "image_path")
MEASURED = frozenset({"id", "live", "roots", "paths", "path", "size", "mtime", "width", "height", "format"})
MAX_FIELD = 1 << 20


class LabelRow(NamedTuple):
    """One picture's labels; `file` is relative to the folder of the label file."""

    file: str
    facts: dict[str, Any]


class LabelError(NamedTuple):
    """A row that cannot be used; line 0 is the file as a whole."""

    line: int
    reason: str


def label_rows(place: Path) -> Iterator[LabelRow | LabelError]:
    """Rows of a csv, tsv, jsonl or parquet file that has a column naming the picture (`file_name`, `path`, …)."""
    reader = {".jsonl": _jsonl, ".parquet": _parquet}.get(place.suffix.lower(), _csv)
    try:
        yield from reader(place)
    except UnicodeDecodeError:
        yield LabelError(0, "not UTF-8; save it as UTF-8 and run again")
    except (OSError, csv.Error, ValueError) as error:
        yield LabelError(0, f"cannot be read: {error}")


def sidecar(suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any] | None:
    """What a webdataset sidecar (`.json`, `.txt`, `.cls`) says of its picture; None if it is none or malformed."""
    if suffix not in (".json", ".txt", ".cls") or member.size > MAX_FIELD:
        return None
    file = archive.extractfile(member)
    text = file.read().decode("utf-8", "replace").strip() if file else ""
    if suffix != ".json":
        return {"text" if suffix == ".txt" else "cls": text}
    try:
        return _kept(json.loads(text))
    except (ValueError, AttributeError):
        return None


def kind_of(value: Any) -> str:
    """The narrowest of `int`, `float`, `text` that holds a label value."""
    if isinstance(value, bool):
        return "text"
    if isinstance(value, int):
        return "int" if abs(value) < 2**63 else "text"
    if isinstance(value, float):
        return "float"
    return _kind_of_text(str(value))


def _kind_of_text(text: str) -> str:
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


def cast(value: Any, kind: str) -> Any:
    """A label value as its column's kind stores it."""
    return {"int": int, "float": float, "text": str}[kind](value)


def _csv(place: Path) -> Iterator[LabelRow | LabelError]:
    csv.field_size_limit(MAX_FIELD)
    with place.open(encoding="utf-8-sig", newline="") as file:
        header = file.readline()
        rows = csv.reader(file, delimiter=_delimiter(header))
        names = [name.strip() for name in next(csv.reader([header], delimiter=_delimiter(header)), [])]
        at = _file_column(names)
        if at is None:
            yield LabelError(1, _no_file_column(names))
            return
        for row in rows:
            if row:
                yield _csv_row(names, row, at, rows.line_num + 1)


def _csv_row(names: list[str], row: list[str], at: int, line: int) -> LabelRow | LabelError:
    if len(row) != len(names):
        return LabelError(line, f"has {len(row)} fields where the header has {len(names)}")
    return _row(dict(zip(names, row, strict=True)), names[at], line)


def _jsonl(place: Path) -> Iterator[LabelRow | LabelError]:
    with place.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                yield _json_row(text, line)


def _json_row(text: str, line: int) -> LabelRow | LabelError:
    try:
        row = json.loads(text)
        names = list(row.keys())
    except (ValueError, AttributeError):
        return LabelError(line, "is no JSON object")
    at = _file_column(names)
    return LabelError(line, _no_file_column(names)) if at is None else _row(row, names[at], line)


def _parquet(place: Path) -> Iterator[LabelRow | LabelError]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(place) as file:
        names = file.schema_arrow.names
        at = _file_column(names)
        if at is None:
            yield LabelError(0, _no_file_column(names))
            return
        line = 0
        for batch in file.iter_batches(batch_size=4096):
            for row in batch.to_pylist():
                line += 1
                yield _row(row, names[at], line)


def _row(row: dict[str, Any], column: str, line: int) -> LabelRow | LabelError:
    file = row.pop(column)
    if not isinstance(file, str) or not file.strip():
        return LabelError(line, f"has an empty {column}")
    return LabelRow(file.strip(), _kept(row))


def _kept(row: dict[str, Any]) -> dict[str, Any]:
    """Scalars only, without what eyespot measures itself; the first of two names that differ in case stays."""
    kept: dict[str, Any] = {}
    taken = set(MEASURED)
    for name, value in row.items():
        plain = value.strip() if isinstance(value, str) else value
        if name and name.lower() not in taken and isinstance(plain, str | int | float) and plain != "":
            kept[name] = plain
            taken.add(name.lower())
    return kept


def _file_column(names: list[str]) -> int | None:
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in FILE_COLUMNS if name in lowered), None)


def _no_file_column(names: list[str]) -> str:
    return f"has no column file_name that names the picture; there are: {', '.join(names[:12]) or 'none'}"


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)
