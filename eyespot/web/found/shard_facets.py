"""What one shard contributes to the filters of a page: values with counts, a span of dates, places. Made once a shard.

A shard's own numbers stay with its facts, so that after an index run only those of new shards are made.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.filters import fold_case
from eyespot.gallery.row_store import REPEATED
from eyespot.storage.digests import BLAKE2B
from eyespot.types import Mask
from eyespot.web.found.facts import ShardFacts
from eyespot.web.found.taxa import pairs_of

if TYPE_CHECKING:
    import pyarrow as pa

VALUES = 1 << 16  # of a column of labels; one with more is none
NUMBERS, SAMPLE = (
    40,
    4096,
)  # a column of numbers with more values is a measure and no label; some rows show most of them
GRID = 64  # cells of the map from left to right and from top to bottom, at most


class LabelColumn(NamedTuple):
    """A column of a shard: its values as they first come, and for each entry of its dictionary the number of a value.

    Spellings that differ in upper and lower case are one value. The last number, -1, is of rows where nothing is known.
    """

    values: dict[str, str]  # by their spelling in lower case
    numbers: NDArray[np.int32]
    indices: pa.Array[Any]

    @classmethod
    def of(cls, column: pa.Array[Any]) -> LabelColumn | None:
        """That of a column, (rows,); None if it has more values than a label."""
        encoded: Any = column if hasattr(column, "dictionary") else column.dictionary_encode()
        if len(encoded.dictionary) > VALUES:
            return None
        known: dict[str, int] = {}
        values: dict[str, str] = {}
        numbers = []
        for value in map(str, encoded.dictionary.to_pylist()):
            folded = fold_case(value)
            values.setdefault(folded, value)
            numbers.append(known.setdefault(folded, len(known)))
        return cls(values, np.array([*numbers, -1], np.int32), encoded.indices)

    @property
    def entries(self) -> NDArray[np.signedinteger[Any]]:
        """The number of each row's entry in the dictionary, (rows,)."""
        return np.asarray(self.indices.fill_null(len(self.numbers) - 1))


class ShardFacets:
    """The same of one shard, of its rows that can be found, (rows,)."""

    def __init__(self, facts: ShardFacts, live: Mask) -> None:
        self.facts, self.live = facts, live

    @classmethod
    def of(cls, facts: ShardFacts, live: Mask) -> ShardFacets:
        """The one that was made before, if the same rows can be found."""
        key = ("facets", BLAKE2B(np.packbits(live).data).hexdigest())
        made: ShardFacets = facts.made.setdefault(key, cls(facts, live.copy()))
        return made

    def label(self, name: str, kind: pa.DataType) -> LabelColumn | None:
        """A column with values of a kind; None if it has more values than a label."""
        made = self.facts.made
        if (key := ("label", name, str(kind))) not in made:
            column: Any = self.facts.column(name)
            if not hasattr(column, "dictionary") and self._is_measure(column):
                return None
            own = self.facts.schema.field(name).type
            made[key] = LabelColumn.of(column if own == kind else column.cast(kind))
        found: LabelColumn | None = made[key]
        return found

    def _is_measure(self, column: pa.Array[Any]) -> bool:
        """Whether a column has too many values, as far as that is known without looking at all rows."""
        import pyarrow as pa

        if pa.types.is_integer(column.type):
            return len(column[:SAMPLE].filter(_booleans(self.live[:SAMPLE])).unique().drop_null()) > NUMBERS
        by_row = self.facts.by_row  # there, texts that repeat have a dictionary
        return by_row is not None and pa.types.is_string(column.type) and len(by_row) >= VALUES * REPEATED

    def counts(self, name: str, kind: pa.DataType) -> NDArray[np.int64]:
        """How many rows have each value of a column of labels, (values,)."""
        key = ("counts", name, str(kind))
        if key not in self._made:
            label = self.label(name, kind)
            assert label is not None
            entries = label.entries if self._all_live else label.entries[self.live]
            by_entry = np.bincount(entries, minlength=len(label.numbers))[:-1]
            counts = np.zeros(len(label.values), np.int64)
            np.add.at(counts, label.numbers[:-1], by_entry)
            self._made[key] = counts
        found: NDArray[np.int64] = self._made[key]
        return found

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def pairs(self, lower: tuple[str, pa.DataType], upper: tuple[str, pa.DataType]) -> NDArray[np.int64]:
        """The numbers of values of two columns of labels that come together in a row, each pair once, (2, pairs)."""
        key = ("pairs", str(lower), str(upper))
        if key not in self.facts.made:
            one, two = self.label(*lower), self.label(*upper)
            assert one is not None and two is not None
            self.facts.made[key] = pairs_of(one.numbers[one.entries], two.numbers[two.entries])
        found: NDArray[np.int64] = self.facts.made[key]
        return found

    @cached_property
    def _all_live(self) -> bool:
        return bool(self.live.all())

    @cached_property
    def span(self) -> tuple[Any, Any] | None:
        """The first and the last moment at which a picture was taken; None if that is known of none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if "taken" not in self.facts.schema.names:
            return None
        column: Any = self.facts.column("taken")
        ends: Any = pc.min_max(column.filter(_booleans(self.live))).as_py() if len(column) else {"min": None}
        assert pa.types.is_temporal(column.type)
        return None if ends["min"] is None else (ends["min"], ends["max"])

    # -- places ---------------------------------------------------------------------------------------------

    @cached_property
    def box(self) -> NDArray[np.float64] | None:
        """The least and the greatest latitude and longitude, (2, 2); None if no place is known."""
        places = self._places()
        return np.stack([places.min(axis=1), places.max(axis=1)]) if places.shape[1] else None

    def cells(self, step: float, first: tuple[int, int]) -> NDArray[np.int64]:
        """How many pictures are in each cell of the map from the first one on, (GRID, GRID)."""
        if (key := ("cells", step, first)) not in self._made:
            cells = np.floor(self._places() / step).astype(np.int32) - np.array(first, np.int32)[:, None]
            counts = np.bincount(cells[0] * GRID + cells[1], minlength=GRID * GRID)
            self._made = {**{one: two for one, two in self._made.items() if one[0] != "cells"}, key: counts}
        found: NDArray[np.int64] = self._made[key].reshape(GRID, GRID)
        return found

    def _places(self) -> NDArray[np.float64]:
        """Degrees north and east of the rows that can be found, where both are known, (2, n)."""
        if not {"latitude", "longitude"} <= set(self.facts.schema.names):
            return np.zeros((2, 0))
        columns = [self._degrees(name) for name in ("latitude", "longitude")]
        known = self.live & np.isfinite(columns[0]) & np.isfinite(columns[1])
        return np.stack(columns if known.all() else [column[known] for column in columns])

    def _degrees(self, name: str) -> NDArray[np.float64]:
        column: Any = self.facts.column(name)
        return np.asarray(column.fill_null(np.nan) if column.null_count else column, np.float64)


def _booleans(mask: Mask) -> pa.Array[Any]:
    import pyarrow as pa

    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits.data)])
