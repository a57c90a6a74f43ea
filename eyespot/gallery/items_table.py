"""The facts of a shard's rows, `items.parquet`: written whole, read whole, by columns or by rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.files import way_out, whole
from eyespot.storage.digests import new_digested

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS = "items.parquet"
LARGE = 1 << 16  # rows of a shard from which on single ones are not read from its table
ROW_STORE = ("items.arrow", "items.ids.arrow")  # made of the table of facts, see `row_store`
WORDS = "words.sqlite"  # the same, see `word_table`
FEW = 128  # rows that are sliced out of a table one by one


def write_items(shard: Path, table: pa.Table) -> None:
    """The facts of a shard's rows, `items.parquet`."""
    import pyarrow.parquet as pq

    derived = (*ROW_STORE, WORDS)
    with new_digested(shard / ITEMS, derived) as file:
        for name in derived:  # of the table as it was
            (shard / name).unlink(missing_ok=True)
        # Few rows where single ones are read from the table, many where a filter reads it
        group = 2048 if len(table) < LARGE else LARGE
        pq.write_table(without_nan(table), file.io, row_group_size=group, write_page_checksum=True)


def without_nan(table: pa.Table) -> pa.Table:
    """The same with null for NaN: of a number that is none nothing is known, and filters treat it as missing."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_floating(field.type) and np.isnan(column.to_numpy()).sum() > column.null_count:
            import pyarrow.compute as pc

            table = table.set_column(at, field, pc.if_else(pc.is_nan(column), None, column))
    return table


def read_items(shard: Path, columns: list[str] | None = None) -> pa.Table:
    """The facts of a shard, or some columns of them."""
    import pyarrow.parquet as pq

    with whole(shard / ITEMS, lambda: way_out(shard)) as place, pq.ParquetFile(place) as file:
        return file.read(columns=columns)  # read_table would load pandas where it is installed


def schema_of(shard: Path) -> pa.Schema:
    """The columns of a shard's facts. Raises FileNotFoundError for a shard that is gone."""
    import pyarrow.parquet as pq

    return pq.read_schema(shard / ITEMS)


def read_rows(shard: Path, rows: Sequence[int]) -> pa.Table:
    """The facts of some rows of a shard, in their order; of a large table only the parts that hold them are read."""
    import pyarrow.parquet as pq

    with whole(shard / ITEMS, lambda: way_out(shard)) as place, pq.ParquetFile(place) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)  # (groups,)
        groups, at = np.unique(np.searchsorted(ends, rows, side="right"), return_inverse=True)
        starts = np.cumsum([0, *(sizes[group] for group in groups)])  # of each group among those that are read
        before = (ends - sizes)[groups]
        return taken(file.read_row_groups(groups.tolist()), np.asarray(rows) - before[at] + starts[at])


def taken(table: pa.Table, numbers: NDArray[np.int64]) -> pa.Table:
    """These rows of a table, in their order."""
    import pyarrow as pa

    # `take` would load pyarrow.compute, which takes longer than this
    if 0 < len(numbers) <= FEW and "pyarrow.compute" not in sys.modules:
        return pa.concat_tables([table.slice(row, 1) for row in numbers.tolist()])
    # pyarrow would load pandas, where it is installed, to look at a plain array
    data: Any = memoryview(np.ascontiguousarray(numbers, np.int64).data)
    return table.take(pa.Int64Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(data)]))


def count_items(shard: Path) -> int:
    """How many rows a shard has."""
    import pyarrow.parquet as pq

    with whole(shard / ITEMS, lambda: way_out(shard)) as place:
        return int(pq.read_metadata(place).num_rows)
