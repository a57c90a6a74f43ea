"""What a gallery can be filtered by, found in its own columns: labels with counts, a span of dates, a map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eyespot.types import Mask
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded, Taxa, taxa_of

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
    """All that the filter of a page offers; `coded` are the columns of the labels, `taxa` those that nest."""

    labels: list[Label]
    first: str | None  # date
    last: str | None
    map: Map | None
    columns: list[str]  # all that a condition may name
    coded: dict[str, Coded]
    taxa: Taxa


_COUNTED: WeakKeyDictionary[Snapshot, Facets] = WeakKeyDictionary()


def facets_of(snapshot: Snapshot) -> Facets:
    """The filters that fit this gallery; counted once over the pictures that can be found."""
    if snapshot not in _COUNTED:
        names = dict.fromkeys(name for table in snapshot.tables for name in table.schema.names if name not in OWN)
        coded = {name: made for name in names if (made := _coded(snapshot, name))}
        labels = [_label(name, column, snapshot.view.live) for name, column in coded.items()]
        first, last = _span(snapshot)
        columns = list(snapshot.kinds)
        _COUNTED[snapshot] = Facets(labels, first, last, _map(snapshot), columns, coded, taxa_of(coded))
    return _COUNTED[snapshot]


def _span(snapshot: Snapshot) -> tuple[str | None, str | None]:
    """The first and the last day on which a picture was taken."""
    import pyarrow.compute as pc

    if not snapshot.tables or not len(taken := _live_column(snapshot, "taken")):
        return None, None
    ends: Any = pc.min_max(taken).as_py()
    return ends["min"].date().isoformat(), ends["max"].date().isoformat()


def _live_column(snapshot: Snapshot, name: str) -> pa.ChunkedArray[Any]:
    """A column of the rows that can be found, without nulls."""
    import pyarrow as pa

    return snapshot.column(name).filter(pa.array(snapshot.view.live.tolist())).drop_null()


def _coded(snapshot: Snapshot, name: str) -> Coded | None:
    """A column as numbers of its values; None for what is no label: a measure, a list, a value for each picture."""
    import pyarrow as pa

    column = snapshot.column(name)
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        return None
    coded = Coded.of(column)
    found = np.bincount(coded.codes[snapshot.view.live] + 1, minlength=len(coded.values) + 1)[1:]
    most = int(found.sum()) // 2 if pa.types.is_string(column.type) else DISTINCT_NUMBERS
    return coded if 1 < np.count_nonzero(found) <= most else None


def _label(name: str, column: Coded, live: Mask) -> Label:
    """The values of a column by how many pictures have them."""
    counts = np.bincount(column.codes[live] + 1, minlength=len(column.values) + 1)[1:].tolist()
    both = zip(column.values, counts, strict=True)
    values = sorted((one for one in both if one[1]), key=lambda one: (-one[1], one[0]))
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
