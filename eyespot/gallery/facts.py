"""The table of facts of a shard, `items.parquet`: a pure function of what the index knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from eyespot.gallery.index_tables import OPTIONAL
from eyespot.gallery.picture_index import StoredRow
from eyespot.photos import provenance

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
# To the second: what a clock shows that nobody set
_UNSET = [datetime(year, 1, 1) for year in (1970, 1980, 2000)]
# What the picture does not say itself, a label column of the same name may.
_FILLED = ("taken", "latitude", "longitude", "camera")


def misdated(taken: pa.ChunkedArray[Any]) -> list[bool]:
    """Which of these dates, (rows,), are of a clock that nobody set, or of the future."""
    import pyarrow.compute as pc

    latest = datetime.now() + timedelta(days=1)  # anywhere on earth
    wrong = pc.or_(pc.is_in(taken, pa.array(_UNSET, taken.type)), pc.greater(taken, pa.scalar(latest, taken.type)))
    return [bool(one) for one in wrong.to_pylist()]  # null without a date


def schema_of(columns: Mapping[str, str]) -> pa.Schema:
    """The columns of every shard's table: the fixed ones, then the labels."""
    labels = [pa.field(name, _ARROW[kind]) for name, kind in columns.items() if _is_column(name)]
    return pa.schema([*FIXED, *labels])


def _is_column(label: str) -> bool:
    """Whether a label has a column, and is neither a date nor a position from a sidecar."""
    return label.casefold() not in _FILLED and not label.startswith(("xmp:", "takeout:"))


def table_of(rows: Iterable[StoredRow], columns: Mapping[str, str]) -> pa.Table:
    """The table of a shard's rows; `columns` maps label columns to their kinds."""
    # Where a label and what is measured have one name and two kinds, the column is text
    columns = {name: kind if OPTIONAL.get(name, kind) == kind else "text" for name, kind in columns.items()}
    dicts = [_row(stored, columns) for stored in rows]
    schema = schema_of(columns)
    named = {name.casefold() for name in schema.names}  # a label column of the user's goes first
    for name, kind in OPTIONAL.items():
        if name not in named and any(row.get(name) is not None for row in dicts):
            beside = {provenance.DATE_SOURCE: "taken", provenance.POSITION_SOURCE: "longitude"}.get(name)
            place = schema.get_field_index(beside) + 1 if beside else len(schema)
            schema = schema.insert(place, pa.field(name, _ARROW[kind]))
    return pa.Table.from_pylist(dicts, schema=schema)


def _row(stored: StoredRow, columns: Mapping[str, str]) -> dict[str, Any]:
    own = {"id": stored.id, "live": bool(stored.paths), "roots": stored.roots, "paths": stored.paths}
    own |= {"size": stored.size, "mtime": stored.mtime, **dict.fromkeys(("taken", "latitude", "longitude"))}
    labels = {name.casefold(): value for name, value in stored.labels.items()}
    label_columns = ((name, kind) for name, kind in columns.items() if _is_column(name))
    row = {name: _CASTS[kind](labels[name.casefold()]) for name, kind in label_columns if name.casefold() in labels}
    measured = ((name, kind, stored.measured.get(name)) for name, kind in OPTIONAL.items())
    texts = {name: _CASTS[columns.get(name, kind)](one) for name, kind, one in measured if one is not None}
    camera = stored.measured.get("camera") or labels.get("camera", "")
    own |= {name: stored.measured.get(name) for name in ("width", "height")} | {"camera": str(camera) or None}
    by_source = _date(stored, labels) | _position(stored, labels)
    sources = {name: by_source.pop(name) for name in provenance.COLUMNS if name in by_source}
    for name in (provenance.DATE_SOURCE, provenance.POSITION_SOURCE):
        if not str(sources.get(name)).startswith("labels"):  # a table may name the sources of its own facts alone
            row.pop(name, None)
    return texts | sources | row | own | by_source


def _date(stored: StoredRow, labels: Mapping[str, Any]) -> dict[str, Any]:
    """When a picture was taken and what says so: the picture itself, or else a table, a sidecar or its name."""
    measured, label = _moment(stored.measured.get("taken")), labels.get("taken")
    if measured is not None:
        return {"taken": measured, provenance.DATE_SOURCE: stored.measured.get(provenance.DATE_SOURCE)}
    names = filter(None, (provenance.date_in_name(path.rpartition("/")[2]) for path in stored.paths))
    by_source: dict[str, Iterable[object]] = {
        "labels": [str(label), str(_moment(label))[: 10 if len(str(label)) <= 10 else 19]],  # 20010506 is a day
        "XMP sidecar": [labels.get("xmp:taken")],
        "Google Takeout (UTC)": [labels.get("takeout:taken")],
        "file name": names,
    }
    return provenance.best_date(by_source)


def _position(stored: StoredRow, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Where it was taken and what says so, in the same order."""
    source = stored.measured.get(provenance.POSITION_SOURCE)
    by_source = {
        source or "GPS": (stored.measured.get("latitude"), stored.measured.get("longitude")),
        "labels": (labels.get("latitude"), labels.get("longitude")),
        "XMP sidecar": (labels.get("xmp:latitude"), labels.get("xmp:longitude")),
        "Google Takeout": (labels.get("takeout:latitude"), labels.get("takeout:longitude")),
    }
    found = provenance.best_position(by_source)
    degrees = ((name, _degrees(labels.get(name), limit)) for name, limit in (("latitude", 90), ("longitude", 180)))
    halves = {name: value for name, value in degrees if value is not None}  # a table may give one alone
    return halves | found if len(halves) == 1 else found


def _degrees(value: Any, limit: float) -> float | None:
    with suppress(TypeError, ValueError, OverflowError):
        return None if abs(number := float(value)) > limit else number
    return None


def _moment(value: Any) -> datetime | None:
    """A time that the column can hold, or None: a label is free text."""
    with suppress(ValueError):
        return None if value is None else datetime.fromisoformat(str(value)).replace(tzinfo=None, microsecond=0)
    return None
