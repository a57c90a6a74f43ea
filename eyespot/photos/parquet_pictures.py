"""Pictures inside a parquet file, in a column of structs {bytes, path} as `datasets` writes them: one a row.

A picture is called by its row and its name there, `000042/train/fox.jpg`, so that two of one name are two; its other
plain columns are its labels. Rows are read forward in small batches: parquet gives no single row.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

from eyespot.photos.found import Labels, Record, Seen, Unreadable, clamped, refuse_size
from eyespot.photos.labels import FILE_COLUMNS, LabelError, label_row, parquet_rows
from eyespot.photos.names import stored_name

_BATCH, _HELD, _BUFFER = 16, 4, 1 << 20  # rows; batches, since several threads read at a time; bytes
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
    column, written = picture_column(place) or "", clamped(os.stat(place).st_mtime_ns)
    try:
        rows = zip(parquet_rows(Path(place)), _PictureRows(place).sizes(), strict=True)
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
                yield Seen(path, size, written, number)
                yield Labels(path, labels.facts)
    except ValueError as error:
        yield Unreadable("", f"the parquet file cannot be read to its end ({error})")


def read_row(place: str, row: int) -> bytes:
    """The picture of a row, counted from 0, as it is now; OSError if the file or the picture is gone."""
    status = os.stat(place)
    return _opened(place, status.st_mtime_ns, status.st_size).read(row)


@lru_cache(maxsize=4)
def _opened(place: str, mtime: int, size: int) -> _PictureRows:
    """Opened once while the file stays as it is."""
    return _PictureRows(place)


class _PictureRows:
    """The pictures of one file. A row behind those that are held is read again from the start of its row group."""

    def __init__(self, place: str) -> None:
        import pyarrow.parquet as pq

        self.file, self.leaf = pq.ParquetFile(place, buffer_size=_BUFFER), f"{picture_column(place)}.bytes"
        groups = range(self.file.num_row_groups)
        self.ends = [*accumulate((self.file.metadata.row_group(group).num_rows for group in groups), initial=0)]
        self.held: deque[tuple[int, Any]] = deque(maxlen=_HELD)  # the first row of each, and its pictures
        self.at, self.coming, self.lock = 0, self._from(0), Lock()

    def _from(self, group: int) -> Iterator[Any]:
        groups = range(group, self.file.num_row_groups)
        for batch in self.file.iter_batches(_BATCH, row_groups=groups, columns=[self.leaf]):
            yield batch.column(0).field("bytes")

    def sizes(self) -> Iterator[int | None]:
        """The bytes of each picture; None for a row without one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            for pictures in self._from(0):
                yield from pc.binary_length(pictures).to_pylist()
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error

    def read(self, row: int) -> bytes:
        """The picture of a row; OSError if it is gone or too large."""
        with self.lock:
            group = bisect_right(self.ends, row) - 1
            if not any(first <= row < first + len(pictures) for first, pictures in self.held):
                if row < self.at or self.ends[group] > self.at:
                    self.at, self.coming = self.ends[group], self._from(group)
                while self.at <= row:
                    if (pictures := next(self.coming, None)) is None:
                        raise OSError("gone from its parquet file")
                    self.held.append((self.at, pictures))
                    self.at += len(pictures)
            first, pictures = next(one for one in self.held if one[0] <= row < one[0] + len(one[1]))
            if (picture := pictures[row - first]).as_py() is None:
                raise OSError("gone from its parquet file")
            refuse_size(len(picture.as_buffer()))
            return bytes(picture.as_py())
