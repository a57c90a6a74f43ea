"""Label columns beside the photos: `metadata.csv` as in the HF imagefolder layout, lists of paths, COCO, tar sidecars.

Malformed rows are named with their file and line; the good rest is read.
"""

from __future__ import annotations

import csv
import json
import math
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.photos.delimited import MAX_FIELD, read_delimited
from eyespot.photos.found import is_utf8, reason

FILE_COLUMNS = ("file_name", "filename", "file", "path", "filepath", "image", "image_path")
MEASURED = frozenset(
    {"id", "live", "roots", "paths", "path", "size", "mtime", "width", "height", "format", "rank", "score"}
)
LABELS_LOST = "labels cannot be read: "  # how the reason of a file that gives no labels as a whole begins


class LabelRow(NamedTuple):
    """One picture's labels; `file` is relative to the folder of the label file."""

    file: str
    facts: dict[str, Any]


class LabelError(NamedTuple):
    """A row that cannot be used (in COCO JSON: an image by its place); line 0 is the file as a whole."""

    line: int
    reason: str


def label_rows(place: Path, keyed: bool = False) -> Iterator[LabelRow | LabelError]:
    """Rows of a csv, tsv, jsonl or parquet file with a column naming the picture (`file_name`, …), or of COCO JSON.

    `keyed`: of a parquet file that names no files but keys, as img2dataset's do: `file` is the key.
    """
    readers = {".json": _coco, ".jsonl": _jsonl, ".parquet": _parquet}
    reader = _keyed if keyed else readers.get(place.suffix.lower(), _csv)
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            raise OSError("not a regular file")
        yield from reader(place)
    except UnicodeDecodeError:
        yield _lost("not UTF-8; save it as UTF-8 and run again")
    except OSError as error:
        yield _lost(reason(error))
    except (csv.Error, ValueError) as error:
        yield _lost(str(error).partition("\n")[0])


def names_keys(place: Path) -> bool:
    """Whether a table is a parquet file with a column `key` and none that names the picture."""
    from eyespot.photos.parquet import columns_of

    try:
        names = list(columns_of(place)) if place.suffix.lower() == ".parquet" else []
    except (OSError, ValueError):
        return False
    return "key" in names and _file_column(names) is None


def _lost(why: str) -> LabelError:
    return LabelError(0, LABELS_LOST + why)


def sidecar(suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any] | LabelError | None:
    """What a webdataset sidecar (`.json`, `.txt`, `.cls`) says of its picture; None if the member is none."""
    if suffix not in (".json", ".txt", ".cls"):
        return None
    if member.size > MAX_FIELD:
        return LabelError(0, f"longer than the {MAX_FIELD >> 20} MiB that labels may be")
    file = archive.extractfile(member)
    text = file.read().decode("utf-8", "replace").strip() if file else ""
    row = _object(text) if suffix == ".json" else {suffix.removeprefix(".").replace("txt", "text"): text}
    if row is None:
        return LabelError(0, "is no JSON object")
    facts = _label_columns(row)
    return facts if _can_be_stored(facts) else LabelError(0, _HALF)


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


def _csv(place: Path) -> Iterator[LabelRow | LabelError]:
    with place.open(encoding="utf-8-sig", newline="") as file:
        names, rows = read_delimited(file)
        column = _file_column(names)
        if column is None:
            yield _lost(_no_file_column(names))
            return
        for line, row in rows:
            yield LabelError(line, row) if isinstance(row, str) else _row(row, column, line)


def _jsonl(place: Path) -> Iterator[LabelRow | LabelError]:
    with place.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            row = _object(text)
            if row is None:
                yield LabelError(line, "is no JSON object")
            elif (column := _file_column(list(row))) is None:
                yield LabelError(line, _no_file_column(list(row)))
            else:
                yield _row(row, column, line)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parquet(place: Path) -> Iterator[LabelRow | LabelError]:
    from eyespot.photos.parquet import columns_of, rows_of

    columns = columns_of(place)
    column = _file_column(list(columns))
    if column is None:
        yield _lost(f"{_no_file_column(list(columns))}; pictures inside a parquet file have to be saved as files first")
        return
    for line, row in enumerate(rows_of(place, columns), 1):
        if row[column] is None and columns[column] != column:
            yield LabelError(line, f"its {column} lies inside the parquet file; save it as a file first")
        else:
            yield _row(row, column, line)


def _keyed(place: Path) -> Iterator[LabelRow | LabelError]:
    from eyespot.photos.parquet import columns_of, rows_of

    for line, row in enumerate(rows_of(place, columns_of(place)), 1):
        yield _row(row, "key", line)


def _coco(place: Path) -> Iterator[LabelRow | LabelError]:
    from eyespot.photos.coco_json import rows_of

    for number, row in rows_of(place):
        yield LabelError(number, row) if isinstance(row, str) else _row(row, "file_name", number)


def _row(row: dict[str, Any], column: str, line: int) -> LabelRow | LabelError:
    file, facts = row.pop(column), _label_columns(row)
    if not isinstance(file, str) or not file.strip():
        return LabelError(line, f"has an empty {column}")
    if "\0" in file or not _can_be_stored({column: file, **facts}):
        return LabelError(line, _HALF)
    return LabelRow(file.strip(), facts)


_HALF = "holds half a character (a lone surrogate) or a NUL"


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


def _file_column(names: list[str]) -> str | None:
    lowered = [name.casefold() for name in names]
    return next((names[lowered.index(name)] for name in FILE_COLUMNS if name in lowered), None)


def _no_file_column(names: list[str]) -> str:
    return f"has no column file_name that names the picture; there are: {', '.join(names[:12]) or 'none'}"
