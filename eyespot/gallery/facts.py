"""The table of facts of a shard, `items.parquet`: a pure function of what the ledger knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from eyespot.gallery.picture_index import StoredRow
from eyespot.photos.embedded_texts import EMBEDDED
from eyespot.photos.videos.facts import VIDEO_COLUMNS

_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.string()),
    pa.field("live", pa.bool_()),
    pa.field("roots", pa.list_(pa.int32())),
    pa.field("paths", pa.list_(pa.string())),
    pa.field("size", pa.int64()),
    pa.field("mtime", pa.int64()),
    pa.field("width", pa.int32()),
    pa.field("height", pa.int32()),
    pa.field("taken", pa.timestamp("s")),
    pa.field("latitude", pa.float64()),
    pa.field("longitude", pa.float64()),
    pa.field("camera", pa.string()),
]
FIXED = pa.schema(_FIELDS)
_ARROW = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
_CASTS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "text": str}
# What the picture does not say itself, a label column of the same name may.
_FILLED = ("taken", "latitude", "longitude", "camera")


def schema_of(columns: Mapping[str, str]) -> pa.Schema:
    """The columns of every shard's table: the fixed ones, then the labels."""
    labels = [pa.field(name, _ARROW[kind]) for name, kind in columns.items() if name.casefold() not in _FILLED]
    return pa.schema([*FIXED, *labels])


def table_of(rows: Iterable[StoredRow], columns: Mapping[str, str]) -> pa.Table:
    """The table of a shard's rows; `columns` maps label columns to their kinds."""
    # Texts of the files themselves, and facts of videos, are columns only of shards whose pictures have some
    dicts = [_row(stored, columns) for stored in rows]
    schema = schema_of(columns)
    named = {name.casefold() for name in schema.names}  # a label column of the user's goes first
    for name, kind in {**dict.fromkeys(EMBEDDED, "text"), **VIDEO_COLUMNS}.items():
        if name not in named and any(row.get(name) is not None for row in dicts):
            schema = schema.append(pa.field(name, _ARROW[kind]))
    return pa.Table.from_pylist(dicts, schema=schema)


def _row(stored: StoredRow, columns: Mapping[str, str]) -> dict[str, Any]:
    own = {"id": stored.id, "live": bool(stored.paths), "roots": stored.roots, "paths": stored.paths}
    labels = {name.casefold(): value for name, value in stored.labels.items()}
    label_columns = ((name, kind) for name, kind in columns.items() if name.casefold() not in _FILLED)
    row = {name: _CASTS[kind](labels[name.casefold()]) for name, kind in label_columns if name.casefold() in labels}
    values = {name: stored.measured.get(name) for name in ("width", "height")}
    for name in _FILLED:
        value = stored.measured.get(name)
        values[name] = _fitting(name, labels.get(name) if value is None else value)
    texts = {name: text for name in (*EMBEDDED, *VIDEO_COLUMNS) if (text := stored.measured.get(name)) is not None}
    return texts | row | own | {"size": stored.size, "mtime": stored.mtime} | values


def _fitting(name: str, value: Any) -> Any:
    """A value that its column can hold, or None: a label is free text."""
    if value is None or name == "camera":
        return None if value is None else str(value)
    try:
        if name == "taken":
            return datetime.fromisoformat(str(value)).replace(tzinfo=None, microsecond=0)
        number, limit = float(value), 90.0 if name == "latitude" else 180.0
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= limit else None
