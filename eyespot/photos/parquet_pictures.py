"""Pictures inside a parquet file, in a column of structs {bytes, path} as `datasets` writes them: one a row.

A picture is called by its row and its name there, `000042/train/fox.jpg`, so that two of one name are two; its other
plain columns are its labels. Parquet gives no single row: a row group is read as a whole, and two of them are held.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

from eyespot.photos.found import Labels, Record, Seen, Unreadable, clamped, refuse_size
from eyespot.photos.labels import FILE_COLUMNS, LabelError, label_row, parquet_rows
from eyespot.photos.names import stored_name

_LOCK = Lock()
_NAMES = (*FILE_COLUMNS, "id", "_id", "key")
_OF_QUERY = {"query", "relevant", "clip_score", "supercategory", "category", "iconic_group"}  # in INQUIRE-Rerank


def picture_column(place: str) -> str | None:
    """The column whose structs hold pictures; None where none does, or all of them are paths of files outside."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(place)
    except (pa.ArrowException, OSError):
        return None
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    for at in range(about.num_columns):
        name, _, leaf = about.schema.column(at).path.partition(".")
        chunks = [group.column(at) for group in groups if leaf == "bytes"]
        empty = [one.statistics is not None and one.statistics.null_count == one.num_values for one in chunks]
        if not all(empty) and about.schema.column(at).physical_type == "BYTE_ARRAY":
            return str(name)
    return None


def scan_parquet(place: str) -> Iterator[Record]:
    """Every picture of the file in its order, and the labels of each."""
    column, status = picture_column(place) or "", os.stat(place)
    try:
        rows = zip(parquet_rows(Path(place)), _sizes(place, status.st_mtime_ns, status.st_size), strict=True)
        for number, (row, size) in enumerate(rows):
            names = [column, *_NAMES, *(name for name in row if name.casefold().endswith("file_name"))]
            name = next((str(row[name]) for name in names if row.get(name) not in (None, "")), "")
            path = f"{number:06}/{stored_name(name.strip('/'))}".removesuffix("/")
            if {"query", "relevant"} <= row.keys():  # of a pair: as a label it would answer the query
                row = {name: value for name, value in row.items() if name not in _OF_QUERY}
            labels = label_row({**row, column: path}, column, number + 1)
            if isinstance(labels, LabelError) or size is None:
                yield Unreadable(path, "holds no picture" if size is None else f"its row {labels.reason}")
            else:
                yield Seen(path, size, clamped(status.st_mtime_ns), number)
                yield Labels(path, labels.facts)
    except (OSError, ValueError) as error:
        yield Unreadable("", f"the parquet file cannot be read to its end ({error})")


def read_row(place: str, row: int) -> bytes:
    """The picture of a row, counted from 0, as it is now; OSError if the file or the picture is gone."""
    status = os.stat(place)
    with _LOCK:
        ends = _ends(place, status.st_mtime_ns, status.st_size)
        group = bisect_right(ends, row) - 1
        if group == len(ends) - 1:
            raise OSError("gone from its parquet file")
        picture = _pictures(place, status.st_mtime_ns, status.st_size, group)[row - ends[group]].as_buffer()
    if picture is None:
        raise OSError("gone from its parquet file")
    refuse_size(len(picture))
    return bytes(picture)


@lru_cache(maxsize=8)
def _ends(place: str, mtime: int, size: int) -> list[int]:
    """How many rows come before each row group, and all rows."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(place)
    return [*accumulate((about.row_group(group).num_rows for group in range(about.num_row_groups)), initial=0)]


@lru_cache(maxsize=2)  # threads that read ahead may be in the next group
def _pictures(place: str, mtime: int, size: int, group: int) -> Any:
    """The pictures of a row group, which parquet gives as a whole."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(place) as file:
            column = file.read_row_group(group, columns=[f"{picture_column(place)}.bytes"]).column(0)
            return pc.struct_field(column, "bytes")
    except pa.ArrowException as error:
        raise OSError(f"the parquet file cannot be read ({error})") from error


def _sizes(place: str, mtime: int, size: int) -> Iterator[int | None]:
    """The bytes of each picture; None for a row without one."""
    import pyarrow.compute as pc

    for group in range(len(_ends(place, mtime, size)) - 1):
        with _LOCK:
            pictures = _pictures(place, mtime, size, group)
        yield from pc.binary_length(pictures).to_pylist()
