"""What a gallery can be filtered by, found in its own columns: labels with counts, a span of dates, a map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eyespot.web.found.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 200  # values of a label
OWN = frozenset({"id", "live", "roots", "paths", "size", "mtime", "width", "height", "taken", "latitude", "longitude"})
DISTINCT_NUMBERS = 40  # a column of numbers with more values is a measure and no label
CELLS = 48  # of the map, from left to right
SOME = (3, 20)  # pictures from which on a cell of the map has some, and many


class Label(NamedTuple):
    """A column of labels: its commonest values with their counts, and how many other values there are."""

    column: str
    values: list[tuple[str, int]]
    others: int


class Map(NamedTuple):
    """Where pictures were taken: the box around all of them in degrees, and its cells that hold any.

    `cells` are the outlines, as SVG paths with north on top, of cells with few, some and many pictures.
    """

    south: float
    west: float
    north: float
    east: float
    step: float  # degrees, of a cell's sides
    cells: list[str]


class Facets(NamedTuple):
    """All that the filter of a page offers."""

    labels: list[Label]
    first: str | None  # date
    last: str | None
    map: Map | None
    columns: list[str]  # all that a condition may name


_COUNTED: WeakKeyDictionary[Snapshot, Facets] = WeakKeyDictionary()


def facets_of(snapshot: Snapshot) -> Facets:
    """The filters that fit this gallery; counted once over the pictures that can be found."""
    if snapshot not in _COUNTED:
        names = dict.fromkeys(name for table in snapshot.tables for name in table.schema.names)
        labels = [label for name in names if name not in OWN if (label := _label(snapshot, name))]
        import pyarrow.compute as pc

        if not snapshot.tables or not len(taken := _live_column(snapshot, "taken")):
            first, last = None, None
        else:
            ends: Any = pc.min_max(taken).as_py()
            first, last = ends["min"].date().isoformat(), ends["max"].date().isoformat()
        _COUNTED[snapshot] = Facets(labels, first, last, _map(snapshot), list(snapshot.kinds))
    return _COUNTED[snapshot]


def _live_column(snapshot: Snapshot, name: str) -> pa.ChunkedArray[Any]:
    """A column of the rows that can be found, without nulls."""
    import pyarrow as pa

    return snapshot.column(name).filter(pa.array(snapshot.view.live.tolist())).drop_null()


def _label(snapshot: Snapshot, name: str) -> Label | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _live_column(snapshot, name)
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type) or not len(column):
        return None
    found: list[dict[str, Any]] = pc.value_counts(column).to_pylist()  # type: ignore[misc,assignment]
    counted = sorted(found, key=lambda one: (-one["counts"], str(one["values"])))
    most = len(column) // 2 if pa.types.is_string(column.type) else DISTINCT_NUMBERS
    if not 1 < len(counted) <= most:
        return None
    values = [(str(one["values"]), int(one["counts"])) for one in counted]
    return Label(name, values[:SHOWN], len(values[SHOWN:]))


def _map(snapshot: Snapshot) -> Map | None:
    if not snapshot.tables:
        return None
    degrees = []
    for name in ("latitude", "longitude"):
        # (rows,), NaN where nothing is known or the picture cannot be found
        known = np.array(snapshot.column(name).to_pylist(), dtype=np.float64)
        known[~snapshot.view.live] = np.nan
        degrees.append(known)
    places = np.array(degrees)  # (2, rows)
    places = places[:, np.isfinite(places).all(axis=0)]
    if not places.shape[1]:
        return None
    (south, west), (north, east) = places.min(axis=1), places.max(axis=1)
    step = max(float(east - west), 2 * float(north - south), 0.02) / CELLS
    at, counts = np.unique(np.floor(places / step).astype(np.int64), axis=1, return_counts=True)
    corners = np.round([-(at[0] + 1) * step, at[1] * step], 5)  # (2, cells), top and left
    bounds = zip((1, *SOME), (*SOME, math.inf), strict=True)
    square = f"h{step:.5g}v{step:.5g}h-{step:.5g}z"
    cells = []
    for low, high in bounds:
        inside = corners[:, (counts >= low) & (counts < high)].T.tolist()
        # One path for many squares: a page with an element for each would be slow
        cells.append("".join(f"M{left:g} {top:g}{square}" for top, left in inside))
    return Map(float(south), float(west), float(north), float(east), step, cells)
