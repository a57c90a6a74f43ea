"""Files inside a parquet file, one a row: in a column of structs {bytes, path} as `datasets` writes them, or of bytes.

Parquet gives no single row: a row group is read as a whole, and two of them are held.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from threading import Lock
from typing import Any

# Columns of bytes that are files, as pandas and polars write them
PICTURES = {"image", "img", "picture", "photo", "image_bytes", "jpg", "jpeg", "png", "webp"}
_LOCK = Lock()
_GONE = "gone from its parquet file"


def bytes_column(place: str) -> str | None:
    """The column whose structs hold bytes, or that holds them itself; None where none does, or all are null."""
    path = _bytes_path(place)
    return None if path is None else path.partition(".")[0]


def _bytes_path(place: str) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(place)
    except (pa.ArrowException, OSError):
        return None
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    found = []
    for at in range(about.num_columns):
        column = about.schema.column(at)
        name, _, leaf = column.path.partition(".")
        plain = not leaf and column.logical_type.type == "NONE" and name.lower() in PICTURES
        if column.physical_type == "BYTE_ARRAY" and (leaf == "bytes" or plain):
            chunks = [group.column(at) for group in groups]
            empty = [one.statistics is not None and one.statistics.null_count == one.num_values for one in chunks]
            found += [] if all(empty) else [(plain, at, column.path)]
    return str(min(found)[2]) if found else None


def read_row(place: str, row: int) -> memoryview:
    """The bytes of a row, counted from 0, as they are now; OSError if the file or the row is gone."""
    status = os.stat(place)
    with _LOCK:
        ends = _ends(place, status.st_mtime_ns, status.st_size)
        group = bisect_right(ends, row) - 1
        if group == len(ends) - 1:
            raise OSError(_GONE)
        found = _group(place, status.st_mtime_ns, status.st_size, group)[row - ends[group]].as_buffer()
    if found is None:
        raise OSError(_GONE)
    return memoryview(found)


def sizes(place: str) -> Iterator[int | None]:
    """The number of bytes of each row; None for one without; OSError if the file cannot be read."""
    import pyarrow.compute as pc

    status = os.stat(place)
    for group in range(len(_ends(place, status.st_mtime_ns, status.st_size)) - 1):
        with _LOCK:
            found = _group(place, status.st_mtime_ns, status.st_size, group)
        yield from pc.binary_length(found).to_pylist()


@lru_cache(maxsize=8)
def _ends(place: str, mtime: int, size: int) -> list[int]:
    """How many rows come before each row group, and all rows."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(place)
    return [*accumulate((about.row_group(group).num_rows for group in range(about.num_row_groups)), initial=0)]


@lru_cache(maxsize=2)  # threads that read ahead may be in the next group
def _group(place: str, mtime: int, size: int, group: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(place) as file:
            column = file.read_row_group(group, columns=[_bytes_path(place) or ""]).column(0)
        found = pc.struct_field(column, "bytes") if pa.types.is_struct(column.type) else column
        return found.cast(pa.large_binary()) if pa.types.is_binary_view(found.type) else found
    except pa.ArrowException as error:
        raise OSError(f"the parquet file cannot be read ({error})") from error
