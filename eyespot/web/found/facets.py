"""What a gallery can be filtered by, found in its own columns: labels with counts, a span of dates, a map.

What one shard contributes is made once and stays with its facts: after an index run only new shards are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.filters import fold_case
from eyespot.gallery.row_store import REPEATED
from eyespot.photos.provenance import CHANGED, DOUBTFUL, POSITION_SOURCE
from eyespot.storage.digests import BLAKE2B
from eyespot.types import Mask
from eyespot.web.found.facts import ShardFacts
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded, Codes, Taxa, pairs_of, taxa_of

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")
SHOWN = 200  # values of a label
NO_LABELS = frozenset(
    {"id", "live", "roots", "paths", "size", "mtime", "width", "height", "taken", "latitude", "longitude"}
    | {CHANGED, DOUBTFUL, POSITION_SOURCE}
)
VALUES = 1 << 16  # of a column of labels; one with more is none
NUMBERS = 40  # a column of numbers with more values is a measure and no label
SAMPLE = 4096  # rows that show most measures
CELLS = 48  # of the map, from left to right
GRID = 64  # cells of the map from left to right and from top to bottom, at most
SOME = (3, 20)  # pictures from which on a cell of the map has some, and many


class Label(NamedTuple):
    """A column of labels: its commonest values with their counts, and how many other values there are."""

    column: str
    values: list[tuple[str, int]]
    others: int


class Facets(NamedTuple):
    """All that the filter of a page offers; `coded` are the columns of the labels, `taxa` those that nest."""

    labels: list[Label]
    first: str | None  # date
    last: str | None
    map: dict[str, Any] | None
    coded: dict[str, Coded]
    taxa: Taxa
    undated: int = 0  # pictures of which nothing says when they were taken


_COUNTED: WeakKeyDictionary[Snapshot, Facets] = WeakKeyDictionary()


def facets_of(snapshot: Snapshot) -> Facets:
    """The filters that fit this gallery; counted once over the pictures that can be found."""
    if snapshot not in _COUNTED:
        shards = _shards(snapshot, snapshot.view.live)
        names = dict.fromkeys(name for table in snapshot.tables for name in table.schema.names if name not in NO_LABELS)
        found = {name: made for name in names if (made := _label_column(shards, name))}
        labels = []
        for name, (coded, counts, _) in found.items():
            both = zip(coded.values, counts, strict=True)
            values = sorted((one for one in both if one[1]), key=lambda one: (-one[1], one[0]))
            labels.append(Label(name, values[:SHOWN], len(values[SHOWN:])))

        def pairs(lower: str, upper: str) -> NDArray[np.int64]:
            """The numbers of values of two columns that come together in a row, each pair once, (2, pairs)."""
            pieces = [np.zeros((2, 0), np.int64)]
            for shard, low, up in zip(shards, found[lower][2], found[upper][2], strict=True):
                if len(low) and len(up):
                    here = shard.pairs(lower, upper)
                    pieces.append(np.stack([low[here[0]], up[here[1]]]))
            return np.unique(np.concatenate(pieces, axis=1), axis=1)

        columns = {name: coded for name, (coded, _, _) in found.items()}
        spans = [span for shard in shards if (span := shard.span()) is not None]
        first = min(span[0] for span in spans).date().isoformat() if spans else None
        last = max(span[1] for span in spans).date().isoformat() if spans else None
        taxa = taxa_of(columns, pairs)
        undated = sum(shard.undated() for shard in shards)
        _COUNTED[snapshot] = Facets(labels, first, last, _map(shards), columns, taxa, undated)
    return _COUNTED[snapshot]


# Over all shards: a column of labels, the counts of its values, and for each shard where its values are among all
_LabelColumn = tuple[Coded, list[int], Sequence[NDArray[np.int64]]]


def filters_of(snapshot: Snapshot) -> dict[str, Any]:
    """The same for programs: labels with counts, the span of dates, the box around all places in degrees."""
    facets = facets_of(snapshot)
    labels = [{"column": one.column, "values": dict(one.values), "others": one.others} for one in facets.labels]
    box = facets.map and {name: facets.map[name] for name in ("south", "west", "north", "east")}
    return {"labels": labels, "first": facets.first, "last": facets.last, "undated": facets.undated, "box": box}


def _label_column(shards: Sequence[ShardFacets], name: str) -> _LabelColumn | None:
    """A column as numbers of its values; None for what is not a label: a measure, a list, a value for each picture."""
    import pyarrow as pa

    numbers: dict[str, int] = {}  # by their spelling in lower case
    values: list[str] = []
    places = [np.zeros(0, np.int64) for _ in shards]
    counts = np.zeros(0, np.int64)
    there = [at for at, shard in enumerate(shards) if name in shard.facts.schema.names]
    for at in there:
        if (label := shards[at].label(name)) is None or len(values) > VALUES:
            return None
        for folded, value in label.values.items():
            if folded not in numbers:
                numbers[folded] = len(values)
                values.append(value)
        places[at] = np.array([numbers[folded] for folded in label.values], np.int64)
        counts = np.concatenate([counts, np.zeros(len(values) - len(counts), np.int64)])
        counts[places[at]] += shards[at].counts(name)
    is_text = pa.types.is_string(shards[there[0]].facts.schema.field(name).type)
    if not 1 < np.count_nonzero(counts) <= (counts.sum() // 2 if is_text else NUMBERS):
        return None

    return Coded(values, lambda: _codes(shards, name, places, len(values))), counts.tolist(), places


def _codes(shards: Sequence[ShardFacets], name: str, places: Sequence[NDArray[np.int64]], count: int) -> Codes:
    """For each row the number of its value, in as few bytes as that takes, (rows,); -1 where nothing is known."""
    found: list[Codes] = []
    smallest = np.min_scalar_type(-count - 2)
    for shard, place in zip(shards, places, strict=True):
        label = shard.label(name) if name in shard.facts.schema.names else None
        if label is None:
            found.append(np.full(shard.facts.rows, -1, smallest))
        else:
            found.append(np.append(place, -1).astype(smallest)[label.numbers][label.entries])
    return np.concatenate(found)


def _map(shards: Sequence[ShardFacets]) -> dict[str, Any] | None:
    """Where pictures were taken: the box around all of them and the sides of a cell (`step`), in degrees.

    `cells` are the outlines, as SVG paths with north on top, of cells with few, some and many pictures.
    """
    boxes = [box for shard in shards if (box := shard.box()) is not None]
    if not boxes:
        return None
    (south, west), (north, east) = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    step = max(float(east - west), 2 * float(north - south), 0.02) / CELLS
    around = {"south": float(south), "west": float(west), "north": float(north), "east": float(east)}
    return {**around, "step": step, "cells": _cells(shards, around, step)}


def _shards(snapshot: Snapshot, rows: Mask) -> list[ShardFacets]:
    """What each shard contributes of these rows, (rows,)."""
    starts = snapshot.fact_tables.starts.tolist()
    return [ShardFacets(table, rows[a:b]) for table, a, b in zip(snapshot.tables, starts, starts[1:], strict=False)]


def facets_among(snapshot: Snapshot, rows: Mask, undated: int) -> Facets:
    """The same filters with a map of some rows alone, (rows,), and how many of those have no date."""
    facets = facets_of(snapshot)
    if facets.map is None or (rows == snapshot.view.live).all():
        return facets._replace(undated=undated)
    cells = _cells(_shards(snapshot, rows), facets.map, facets.map["step"])
    return facets._replace(undated=undated, map=facets.map | {"cells": cells})


def _cells(shards: Sequence[ShardFacets], around: Mapping[str, Any], step: float) -> list[str]:
    """The outlines of cells with few, some and many pictures."""
    first = int(np.floor(around["south"] / step)), int(np.floor(around["west"] / step))
    grid = np.sum([shard.cells(step, first) for shard in shards], axis=0)  # (GRID, GRID), from south-west on
    at = np.array(np.nonzero(grid)) + np.array(first)[:, None]  # (2, cells)
    counts = grid[np.nonzero(grid)]
    corners = np.round([-(at[0] + 1) * step, at[1] * step], 5)  # (2, cells), top and left
    square = f"h{step:.5g}v{step:.5g}h-{step:.5g}z"
    cells = []
    for low, high in zip((1, *SOME), (*SOME, math.inf), strict=True):
        inside = corners[:, (counts >= low) & (counts < high)].T.tolist()
        # One path for many squares: a page with an element for each would be slow
        cells.append("".join(f"M{left:g} {top:g}{square}" for top, left in inside))
    return cells


# -- one shard ------------------------------------------------------------------------------------------------------


class ShardLabel(NamedTuple):
    """A column of a shard: its values as they first come, and for each entry of its dictionary the number of a value.

    Spellings that differ in upper and lower case are one value. The last number, -1, is of rows where nothing is known.
    """

    values: dict[str, str]  # by their spelling in lower case
    numbers: NDArray[np.int32]
    indices: pa.Array[Any]

    @property
    def entries(self) -> NDArray[np.signedinteger[Any]]:
        """The number of each row's entry in the dictionary, (rows,)."""
        return np.asarray(self.indices.fill_null(len(self.numbers) - 1))


class ShardFacets:
    """What one shard contributes: values with counts, a span of dates, places. `live` rows can be found, (rows,)."""

    def __init__(self, facts: ShardFacts, live: Mask) -> None:
        self.facts, self.live = facts, live
        self._version = BLAKE2B(np.packbits(live).data).hexdigest()

    def _once(self, name: Hashable, make: Callable[[], Made], *more: Hashable) -> Made:
        """What `make` gives for these live rows; it stays with the facts until it is made for others."""
        key, known = (self._version, *more), self.facts.made.get(name)
        if known is None or known[0] != key:
            known = self.facts.made[name] = key, make()
        found: Made = known[1]
        return found

    def label(self, name: str) -> ShardLabel | None:
        """A column of labels; None for one of fractions or lists, and for one with more values than a label."""
        return self._once(("label", name), lambda: self._encoded(name))

    def _encoded(self, name: str) -> ShardLabel | None:
        import pyarrow as pa

        kind, by_row, column = self.facts.schema.field(name).type, self.facts.by_row, self.facts.column(name)
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            return None
        encoded: Any = column
        if not hasattr(column, "dictionary"):
            # What has too many values, as far as that is known without reading all rows
            if pa.types.is_integer(kind):
                if len(column[:SAMPLE].filter(_booleans(self.live[:SAMPLE])).unique().drop_null()) > NUMBERS:
                    return None
            elif by_row is not None and pa.types.is_string(kind) and len(by_row) >= VALUES * REPEATED:
                return None  # there, texts that repeat have a dictionary
            encoded = column.dictionary_encode()
        if len(encoded.dictionary) > VALUES:
            return None
        known: dict[str, int] = {}
        values: dict[str, str] = {}
        numbers = []
        for value in map(str, encoded.dictionary.to_pylist()):
            folded = fold_case(value)
            values.setdefault(folded, value)
            numbers.append(known.setdefault(folded, len(known)))
        return ShardLabel(values, np.array([*numbers, -1], np.int32), encoded.indices)

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many rows have each value of a column of labels, (values,)."""

        def count() -> NDArray[np.int64]:
            label = self.label(name)
            assert label is not None
            entries = label.entries if self.live.all() else label.entries[self.live]
            counts = np.zeros(len(label.values), np.int64)
            np.add.at(counts, label.numbers[:-1], np.bincount(entries, minlength=len(label.numbers))[:-1])
            return counts

        return self._once(("counts", name), count)

    def pairs(self, lower: str, upper: str) -> NDArray[np.int64]:
        """The numbers of values of two columns of labels that come together in a row, each pair once, (2, pairs)."""

        def pair() -> NDArray[np.int64]:
            one, two = self.label(lower), self.label(upper)
            assert one is not None and two is not None
            return pairs_of(one.numbers[one.entries], two.numbers[two.entries])

        return self._once(("pairs", lower, upper), pair)

    def span(self) -> tuple[Any, Any] | None:
        """The first and the last moment at which a picture was taken; None if that is known of none."""
        import pyarrow.compute as pc

        def ends() -> tuple[Any, Any] | None:
            column: Any = self.facts.column("taken")
            found: Any = pc.min_max(column.filter(_booleans(self.live))).as_py() if len(column) else {"min": None}
            return None if found["min"] is None else (found["min"], found["max"])

        return self._once("span", ends) if "taken" in self.facts.schema.names else None

    def undated(self) -> int:
        """How many pictures have no date."""
        if "taken" not in self.facts.schema.names:
            return int(np.count_nonzero(self.live))
        column: Any = self.facts.column("taken")
        return self._once("undated", lambda: int(column.filter(_booleans(self.live)).null_count))

    def box(self) -> NDArray[np.float64] | None:
        """The least and the greatest latitude and longitude, (2, 2); None if no place is known."""

        def around() -> NDArray[np.float64] | None:
            places = self._places()
            return np.stack([places.min(axis=1), places.max(axis=1)]) if places.shape[1] else None

        return self._once("box", around)

    def cells(self, step: float, first: tuple[int, int]) -> NDArray[np.int64]:
        """How many pictures are in each cell of the map from the first one on, (GRID, GRID)."""

        def count() -> NDArray[np.int64]:
            cells = np.floor(self._places() / step).astype(np.int32) - np.array(first, np.int32)[:, None]
            return np.bincount(cells[0] * GRID + cells[1], minlength=GRID * GRID).reshape(GRID, GRID)

        return self._once("cells", count, step, first)

    def _places(self) -> NDArray[np.float64]:
        """Degrees north and east of the rows that can be found, where both are known, (2, n)."""
        if not {"latitude", "longitude"} <= set(self.facts.schema.names):
            return np.zeros((2, 0))
        found = []
        for name in ("latitude", "longitude"):
            column: Any = self.facts.column(name)
            found.append(np.asarray(column.fill_null(np.nan) if column.null_count else column, np.float64))
        known = self.live & np.isfinite(found[0]) & np.isfinite(found[1])
        return np.stack(found if known.all() else [degrees[known] for degrees in found])


def _booleans(mask: Mask) -> pa.Array[Any]:
    import pyarrow as pa

    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits.data)])
