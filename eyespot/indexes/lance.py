"""Approximate search by LanceDB: a table in a folder or on object storage, with inverted lists of 1-bit codes.

    load(blocks, folder="gallery/index")               opened if the table is there; else it is made there
    load(blocks, folder="s3://bucket/gallery/index")

What it names is scored again from the blocks themselves. The table appears whole or not at all; without its lists,
which are made after it, it is searched slowly and finds the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._approximate import LEAST, Approximate, Scored, divided, finite, name_of, refuse_others, widened
from eyespot.kernels.codes import Block
from eyespot.kernels.rows import Ids, RowBlocks
from eyespot.rooms import needs
from eyespot.types import EyespotError, Mask, UsageError

TABLE = "vectors"
_NAME = b"eyespot.vectors"  # of the vectors, in the table's own notes
_WIDTH = 8  # dimensions are filled up with zeros to a multiple of this
_AT_ONCE = 1 << 16  # rows
_LISTED = 4096  # rows of a list


@dataclass(frozen=True)
class LanceShape:
    """What is built. lists: how many; 0: one for every 4096 rows."""

    lists: int = 0

    def __post_init__(self) -> None:
        if self.lists < 0:
            raise UsageError(f"{self.lists} lists make no index; give one or more")

    def settled(self, rows: int) -> LanceShape:
        """A 0 replaced."""
        return replace(self, lists=self.lists or -(-rows // _LISTED) or 1)


def load(blocks: Sequence[Block] | Block, folder: Path | str | None = None, **options: Any) -> Approximate:
    """An approximate index over one array or several blocks; options as for `LanceShape` and, on its use, `Use`.

    folder: a folder, or a URI of object storage (LanceDB takes its keys from the environment); None: in memory.
    UsageError for a setting that does not exist or a table of other rows; EyespotError if it cannot be opened.
    """
    use, shape = divided(options, LanceShape)
    blocks = [blocks] if isinstance(blocks, np.ndarray) else list(blocks)
    rows = RowBlocks(blocks if use.covered is None else [blocks[at] for at in use.covered])
    shape = shape.settled(len(rows))
    use = replace(use, probes=use.probes or shape.lists)
    if len(rows) < LEAST:
        return Approximate(blocks, None, use)
    os.environ.setdefault("LANCEDB_LOG", "error")  # else it writes on stderr that a new table did not exist before
    with needs("lance"):
        import lancedb
    place = "memory://" if folder is None else str(folder)
    if "://" not in place:
        Path(place).mkdir(parents=True, exist_ok=True)
    try:
        database = lancedb.connect(place)
    except (OSError, RuntimeError, ValueError) as error:
        raise EyespotError(f"{place} cannot be opened by LanceDB ({_first(error)}); check its address") from error
    return Approximate(blocks, LanceTable(_table(rows, shape, database)), use)


class LanceTable:
    """Rows and vectors as LanceDB keeps them."""

    sieving = False  # a filter would have to name every row
    complete = False

    def __init__(self, table: Any) -> None:
        self._table, self.rows = table, int(table.count_rows())

    def scored(self, queries: NDArray[np.float32], count: int, probes: int, mask: Mask | None = None) -> Scored:
        """About how near (LanceDB's scores are not used), and rows, likeliest first, -1 where there are no more."""
        found = np.full((len(queries), count), -1, np.int64)
        for at, query in enumerate(widened(queries, _wide(queries.shape[1]))):
            search = self._table.search(query).distance_type("dot").nprobes(max(1, probes)).limit(count)
            rows = _answered(search.select(["row", "_distance"]))
            found[at, : len(rows)] = rows
        return np.zeros(found.shape, np.float32), found


def _answered(search: Any) -> Ids:
    try:
        rows: Ids = search.to_arrow()["row"].to_numpy()
        return rows
    except (OSError, RuntimeError) as error:  # gone or built again while it was open, or out of reach
        raise EyespotError(f"the LanceDB table cannot be read any more ({_first(error)}); open it again") from error


def _table(rows: RowBlocks, shape: LanceShape, database: Any) -> Any:
    """The table that is there, or one made of these rows; `UsageError` for a table of others."""
    try:
        table = database.open_table(TABLE)
        name = (table.schema.metadata or {}).get(_NAME)
        refuse_others(rows, name and name.decode(), table.count_rows())
        return table
    except (FileNotFoundError, ValueError):
        import pyarrow as pa
        from lancedb.index import IvfRq

        width = _wide(rows.dim)
        fields = [("row", pa.int64()), ("vector", pa.list_(pa.float32(), width))]
        schema = pa.schema(fields, metadata={_NAME: name_of(rows).encode()})
        lists = IvfRq(distance_type="dot", num_partitions=shape.lists)
        try:
            made_table = database.create_table(TABLE, pa.RecordBatchReader.from_batches(schema, _batches(rows, schema)))
            made_table.create_index("vector", config=lists)
            return made_table
        except (OSError, RuntimeError, ValueError) as error:
            problem = f"the table {TABLE} cannot be written to {database.uri} ({_first(error)})"
            raise EyespotError(f"{problem}; make room, or give another place") from error
    except (OSError, RuntimeError) as error:
        problem = f"the table {TABLE} of {database.uri} cannot be read ({_first(error)})"
        raise EyespotError(f"{problem}; delete it and build it again with: eyespot tune --kind lance") from error


def _batches(rows: RowBlocks, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    for start in range(0, len(rows), _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, len(rows)))
        wide = widened(finite(rows.gather(numbers)), _wide(rows.dim))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), wide.shape[1])
        yield pa.RecordBatch.from_arrays([pa.array(numbers), vectors], schema=schema)


def _wide(dim: int) -> int:
    return -(-dim // _WIDTH) * _WIDTH


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
