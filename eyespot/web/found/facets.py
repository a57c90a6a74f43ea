"""What a gallery can be filtered by, found in its own columns: labels with counts, a span of dates, a map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from eyespot.web.found.shard_facets import NUMBERS, VALUES, ShardFacets
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded, Codes, Taxa, taxa_of

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 200  # values of a label
OWN = frozenset({"id", "live", "roots", "paths", "size", "mtime", "width", "height", "taken", "latitude", "longitude"})
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
        shards = _shards(snapshot)
        names = dict.fromkeys(name for table in snapshot.tables for name in table.schema.names if name not in OWN)
        found = {name: made for name in names if (made := _column(shards, name))}
        labels = [_label(name, column) for name, column in found.items()]
        coded = {name: column.coded for name, column in found.items()}
        first, last = _span(shards)
        columns = list(snapshot.kinds)
        _COUNTED[snapshot] = Facets(labels, first, last, _map(shards), columns, coded, _taxa(shards, found))
    return _COUNTED[snapshot]


def _shards(snapshot: Snapshot) -> list[ShardFacets]:
    starts = snapshot.fact_tables.starts[:-1].tolist()
    live = snapshot.view.live
    return [
        ShardFacets.of(table, live[start : start + table.rows])
        for table, start in zip(snapshot.tables, starts, strict=True)
    ]


def _span(shards: Sequence[ShardFacets]) -> tuple[str | None, str | None]:
    """The first and the last day on which a picture was taken."""
    spans = [shard.span for shard in shards if shard.span is not None]
    if not spans:
        return None, None
    return min(first for first, _ in spans).date().isoformat(), max(last for _, last in spans).date().isoformat()


class _CountedColumn(NamedTuple):
    coded: Coded
    counts: list[int]
    kind: pa.DataType
    places: Mapping[int, NDArray[np.int64]]  # by the shard's identity, where its values are among all


def _column(shards: Sequence[ShardFacets], name: str) -> _CountedColumn | None:
    """A column as numbers of its values; None for what is no label: a measure, a list, a value for each picture."""
    import pyarrow as pa

    having = [shard for shard in shards if name in shard.facts.schema.names]
    kind = having[0].facts.schema.field(name).type
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return None
    numbers: dict[str, int] = {}
    values: list[str] = []
    places: list[NDArray[np.int64]] = []  # of each shard that has the column, where its values are among all
    counts = np.zeros(0, np.int64)
    for shard in having:
        if (label := shard.label(name, kind)) is None or len(values) > VALUES:
            return None
        for folded, value in label.values.items():
            if folded not in numbers:
                numbers[folded] = len(values)
                values.append(value)
        at = np.array([numbers[folded] for folded in label.values], np.int64)
        counts = np.concatenate([counts, np.zeros(len(values) - len(counts), np.int64)])
        counts[at] += shard.counts(name, kind)
        places.append(at)
        if not pa.types.is_string(kind) and np.count_nonzero(counts) > NUMBERS:
            return None
    if not 1 < np.count_nonzero(counts) <= (counts.sum() // 2 if pa.types.is_string(kind) else NUMBERS):
        return None
    by_shard = dict(zip(map(id, having), places, strict=True))
    coded = Coded(values, lambda: _codes(shards, name, kind, by_shard, len(values)))
    return _CountedColumn(coded, counts.tolist(), kind, by_shard)


def _taxa(shards: Sequence[ShardFacets], columns: Mapping[str, _CountedColumn]) -> Taxa:
    def pairs(lower: str, upper: str) -> NDArray[np.int64]:
        one, two = columns[lower], columns[upper]
        found = [np.zeros((2, 0), np.int64)]
        for shard in shards:
            if id(shard) in one.places and id(shard) in two.places:
                own = shard.pairs((lower, one.kind), (upper, two.kind))
                found.append(np.stack([one.places[id(shard)][own[0]], two.places[id(shard)][own[1]]]))
        return np.unique(np.concatenate(found, axis=1), axis=1)

    return taxa_of({name: column.coded for name, column in columns.items()}, pairs)


def _codes(
    shards: Sequence[ShardFacets], name: str, kind: pa.DataType, places: Mapping[int, NDArray[np.int64]], count: int
) -> Codes:
    """For each row the number of its value, in as few bytes as that takes, (rows,); -1 where nothing is known."""
    found: Codes = np.full(sum(shard.facts.rows for shard in shards), -1, np.min_scalar_type(-count - 2))
    start = 0
    for shard in shards:
        if (at := places.get(id(shard))) is not None and (label := shard.label(name, kind)) is not None:
            numbers = np.append(at, -1).astype(found.dtype)[label.numbers]
            found[start : start + shard.facts.rows] = numbers[label.entries]
        start += shard.facts.rows
    return found


def _label(name: str, column: _CountedColumn) -> Label:
    """The values of a column by how many pictures have them."""
    both = zip(column.coded.values, column.counts, strict=True)
    values = sorted((one for one in both if one[1]), key=lambda one: (-one[1], one[0]))
    return Label(name, values[:SHOWN], len(values[SHOWN:]))


def _map(shards: Sequence[ShardFacets]) -> Map | None:
    boxes = [shard.box for shard in shards if shard.box is not None]
    if not boxes:
        return None
    (south, west), (north, east) = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    step = max(float(east - west), 2 * float(north - south), 0.02) / CELLS
    first = int(np.floor(south / step)), int(np.floor(west / step))
    grid = np.sum([shard.cells(step, first) for shard in shards], axis=0)  # (GRID, GRID), from south-west on
    at = np.array(np.nonzero(grid)) + np.array(first)[:, None]  # (2, cells)
    counts = grid[np.nonzero(grid)]
    corners = np.round([-(at[0] + 1) * step, at[1] * step], 5)  # (2, cells), top and left
    bounds = zip((1, *SOME), (*SOME, math.inf), strict=True)
    square = f"h{step:.5g}v{step:.5g}h-{step:.5g}z"
    cells = []
    for low, high in bounds:
        inside = corners[:, (counts >= low) & (counts < high)].T.tolist()
        # One path for many squares: a page with an element for each would be slow
        cells.append("".join(f"M{left:g} {top:g}{square}" for top, left in inside))
    return Map(float(south), float(west), float(north), float(east), step, cells)
