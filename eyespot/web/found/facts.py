"""The facts of a gallery as the server holds them: without a copy, and after an index run only new shards are opened.

Segments have a file that is mapped (`eyespot.gallery.row_store`). Of other shards the table itself is mapped and
decoded in groups of rows, the last of which stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.files import whole
from eyespot.gallery.row_store import IdIndex, numbers_of, open_ids, open_rows, plain_type, rows_in
from eyespot.types import EyespotError
from eyespot.web._recent import RecentAnswers

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

WIDE = 1 << 30  # bytes of a column of texts, from which it needs wide offsets


class TableStamp(NamedTuple):
    """Which table of facts: where it lies, when it was written, its bytes, and when its file by rows was."""

    path: Path
    mtime_ns: int
    size: int
    by_row_ns: int

    @classmethod
    def of(cls, shard: Path) -> TableStamp:
        """That of a shard now; `Damaged` if it has none."""
        with whole(shard / disk.ITEMS, lambda: disk.way_out(shard)) as place:
            status = place.stat()
        by_row = shard / disk.ROW_STORE[0]
        written = by_row.stat().st_mtime_ns if by_row.exists() else 0
        return cls(shard / disk.ITEMS, status.st_mtime_ns, status.st_size, written)


def _partitioned(
    rows: Sequence[int], ends: NDArray[np.int64], take: Callable[[int, list[int]], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """What `take` gives for the rows within each part, in the order of `rows`; `ends`: behind each part's last row."""
    found: dict[int, dict[str, Any]] = {}
    parts, starts = np.searchsorted(ends, rows, side="right"), [0, *ends.tolist()]
    for part in np.unique(parts).tolist():
        inside = [int(row) for row, at in zip(rows, parts, strict=True) if at == part]
        found |= zip(inside, take(part, [row - starts[part] for row in inside]), strict=True)
    return [found[int(row)] for row in rows]


class ShardFacts:
    """The facts of one shard as they were when it was opened, also if it is merged or written anew meanwhile."""

    def __init__(self, stamp: TableStamp, groups: RecentAnswers[pa.RecordBatch]) -> None:
        import pyarrow as pa

        self.stamp, self.shard, self._groups = stamp, stamp.path.parent, groups
        self.by_row = open_rows(self.shard)
        stored = self.file.schema_arrow if self.by_row is None else self.by_row.schema
        self.schema = pa.schema([field.with_type(plain_type(field.type)) for field in stored])
        self.rows = self.file.metadata.num_rows if self.by_row is None else len(self.by_row)
        if self.by_row is not None:
            _ = self.ids  # mapped now, for the folder may be gone later
        self.made: dict[Hashable, tuple[Any, Any]] = {}  # of its columns, by whoever needs it again

    def is_current(self) -> bool:
        """Whether the table still lies where it was opened, and was not written anew."""
        try:
            return TableStamp.of(self.shard)[:3] == self.stamp[:3]
        except EyespotError:
            return False

    @cached_property
    def file(self) -> pq.ParquetFile:
        """The table, mapped; as an open file it would count against the system's limit."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with whole(self.stamp.path, lambda: disk.way_out(self.shard)) as place, pa.memory_map(str(place)) as mapped:
            return pq.ParquetFile(pa.BufferReader(mapped.read_buffer()))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Behind the last row of each group of the table, (groups,)."""
        groups = range(self.file.metadata.num_row_groups)
        return np.cumsum([self.file.metadata.row_group(group).num_rows for group in groups])

    @cached_property
    def ids(self) -> IdIndex:
        """Which row an id stands for; made of the ids where it does not lie beside them."""
        known = open_ids(self.shard) if self.by_row is not None else None
        return known or IdIndex.of(self.column("id"))

    def decoded(self, group: int) -> pa.RecordBatch:
        """A group of rows of the table; `Damaged` if it cannot be read."""
        import pyarrow as pa

        with whole(self.stamp.path, lambda: disk.way_out(self.shard)):
            table = self.file.read_row_group(group).combine_chunks()
        columns: list[Any] = [one.chunk(0) if one.num_chunks else pa.nulls(0, one.type) for one in table.columns]
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """What is known of these rows of the shard, in their order; of some columns, or of all."""
        if self.by_row is not None:
            return rows_in(self.by_row, rows, columns)

        def take_from(group: int, inside: list[int]) -> list[dict[str, Any]]:
            batch = self._groups.get((self.stamp, group), lambda: self.decoded(group))
            return rows_in(batch, inside, columns)

        return _partitioned(rows, self._ends, take_from)

    def column(self, name: str) -> pa.Array[Any]:
        """One column, (rows,); from the file by rows it may be a dictionary."""
        import pyarrow as pa

        if self.by_row is not None:
            return self.by_row.column(name)
        with whole(self.stamp.path, lambda: disk.way_out(self.shard)):
            column: Any = self.file.read(columns=[name]).column(name)
        if pa.types.is_string(column.type) and column.nbytes > WIDE:
            column = column.cast(pa.large_string())
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


class Facts:
    """The facts of all rows of a view."""

    def __init__(self, tables: Sequence[ShardFacts]) -> None:
        self.tables = tables
        self.starts = np.cumsum([0, *(table.rows for table in tables)])  # (tables + 1,)

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """What is known of these rows, in their order; of some columns, or of all."""
        return _partitioned(rows, self.starts[1:], lambda at, inside: self.tables[at].take(inside, columns))

    def rows_by_id(self, ids: Sequence[str], live: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The live rows of pictures by their ids, (ids,); -1 for one that is not here."""
        wanted, found = numbers_of(ids), np.full(len(ids), -1, np.int64)
        for start, table in zip(self.starts.tolist(), self.tables, strict=False):
            at, rows = table.ids.candidates(wanted)
            fresh = live[start + rows] & (found[at] < 0)
            at, rows = at[fresh], rows[fresh]
            names = table.take(rows.tolist(), ["id"]) if len(rows) else []
            for place, row, name in zip(at.tolist(), rows.tolist(), names, strict=True):
                if name["id"] == ids[place] and found[place] < 0:
                    found[place] = start + row
        return found
