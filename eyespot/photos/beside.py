"""The table beside a tar, by its name: `train.json` beside `train.tar` (COCO JSON), `00000.parquet` beside `00000.tar`.

iNaturalist's data sets come as the first, img2dataset's shards as the second. A table names pictures by the member they
are, or, with a column `key` and none for files, by the key that they share with their sidecars.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from eyespot.photos.found import Labels, Record, Seen, Unreadable
from eyespot.photos.labels import LabelError, label_rows, names_keys
from eyespot.photos.tars import scan_tar, split_key

_SUFFIXES = (".json", ".jsonl", ".parquet", ".csv", ".tsv")


def table_beside(place: str) -> Path | None:
    """The table of a tar, if there is one."""
    stem = os.path.splitext(place)[0]
    return next((Path(stem + suffix) for suffix in _SUFFIXES if os.path.isfile(stem + suffix)), None)


def scan_with_table(place: str) -> Iterator[Record]:
    """Every picture of a tar, its sidecars' labels, and then what the table beside it says."""
    table = table_beside(place)
    if table is None:
        yield from scan_tar(place)
    elif names_keys(table):
        # A key without a picture is one that could not be downloaded: the table knows of it, the tar does not
        pictures: dict[str, list[str]] = {}
        for record in scan_tar(place):
            if isinstance(record, Seen):
                pictures.setdefault(os.path.basename(split_key(record.path)[0]), []).append(record.path)
            yield record
        for row in label_rows(table, keyed=True):
            if isinstance(row, LabelError):
                yield _unreadable_row(row, table)
            else:
                yield from (Labels(path, row.facts) for path in pictures.get(row.file, ()))
    else:
        yield from _by_member(place, table)


def _by_member(place: str, table: Path) -> Iterator[Record]:
    head = ""
    for record in scan_tar(place):
        if isinstance(record, Seen) and record.path.startswith("./"):  # as `tar -cf train.tar ./train` calls them
            head = "./"
        yield record
    for row in label_rows(table):
        if isinstance(row, LabelError):
            yield _unreadable_row(row, table)
        else:
            yield Labels(head + posixpath.normpath(row.file), row.facts)


def _unreadable_row(row: LabelError, table: Path) -> Unreadable:
    return Unreadable(f"{table.name}:{row.line}" if row.line else table.name, row.reason)
