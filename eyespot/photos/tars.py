"""Pictures inside a tar, with the sidecars of webdataset: `key.json`, `key.txt`, `key.cls` label the pictures of a key.

Webdataset keeps the files of a key together; a sidecar that lies apart from its picture is counted as data.

A table may lie beside the tar, by its name, and names pictures by the member they are: `train.json` beside `train.tar`
(COCO JSON, as iNaturalist's data sets come).
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from eyespot.photos.found import Excluded, Labels, Record, Seen, Skipped, Unreadable, clamped, refuse_size
from eyespot.photos.kinds import HEAD, KIND_OF, SUFFIXES, UNKNOWN, skipped_by_head, why_left_out_below
from eyespot.photos.labels import label_rows, sidecar
from eyespot.photos.names import stored_name

_TABLES = (".json", ".jsonl", ".csv", ".tsv")  # beside a tar, by its name
# What headers end in that are full of noise, or state sizes that no machine has
_TORN = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, MemoryError)


def scan_tar(place: str) -> Iterator[Record]:
    """Every picture of the archive in its order, and the labels of each."""
    sample = _Sample("")
    try:
        with tarfile.open(place, "r:") as archive:
            for member in archive:
                if member.isreg():
                    folder, _, base = stored_name(member.name).rpartition("/")
                    if (key := f"{folder}/{base.partition('.')[0]}") != sample.key:  # as webdataset has them
                        yield from sample.records()
                        sample = _Sample(key)
                    yield from _scan_member(archive, member, sample)
            # Whether an archive's end mark stands where its last member ends; tarfile takes a torn header
            # for the end
            with open(place, "rb") as file:
                file.seek(archive.offset)
                if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                    yield Unreadable("", "the tar cannot be read to its end (cut short?)")
    except _TORN as error:
        yield Unreadable("", f"the tar cannot be read to its end ({error})")
    yield from sample.records()


def read_member(place: str, name: str) -> bytes:
    """A member's bytes as they are now; OSError if the archive or the member is gone."""
    status = os.stat(place)
    members = _members(place, status.st_mtime_ns, status.st_size)
    if name not in members:
        raise OSError("gone from its tar")
    offset, size = members[name]
    refuse_size(size)
    with open(place, "rb") as archive:
        archive.seek(offset)
        return archive.read(size)


@lru_cache(maxsize=4)
def _members(place: str, mtime: int, size: int) -> dict[str, tuple[int, int]]:
    """Where each member lies and how long it is, read once while the archive stays as it is."""
    try:
        with tarfile.open(place, "r:") as archive:
            return {member.name: (member.offset_data, member.size) for member in archive if member.isreg()}
    except _TORN as error:
        raise OSError(f"the tar cannot be read ({error})") from error


def _scan_member(archive: tarfile.TarFile, member: tarfile.TarInfo, sample: _Sample) -> Iterator[Record]:
    name = stored_name(member.name)
    suffix = "." + name.rpartition("/")[2].partition(".")[2].lower().rpartition(".")[2]
    if why := why_left_out_below(os.path.dirname(member.name)):
        yield Excluded(name, why)
        return
    labels = sidecar(suffix, archive, member)
    file = None if suffix in SUFFIXES or suffix in KIND_OF else archive.extractfile(member)
    head = file.read(HEAD) if file else None
    if labels is not None:
        sample.sidecars.append(Skipped(name, KIND_OF.get(suffix, UNKNOWN), suffix))
        sample.problems += [Unreadable(name, labels)] if isinstance(labels, str) else []
        sample.facts |= {} if isinstance(labels, str) else labels
    elif suffix not in SUFFIXES and suffix in KIND_OF:
        yield Skipped(name, KIND_OF[suffix], suffix)
    elif suffix not in SUFFIXES and (left_out := skipped_by_head(name, head)):
        yield left_out
    else:
        try:
            refuse_size(member.size)
        except OSError as error:
            yield Unreadable(name, str(error))
            return
        # A member counts as changed with its archive: tools give members a fixed time, and sizes may stay the same
        written = clamped(os.stat(archive.name or "").st_mtime_ns)
        yield Seen(name, member.size, written, member.offset_data)
        sample.pictures.append(name)


class _Sample:
    """The files of one key that stand together: the pictures, facts, sidecars and problems that were met so far."""

    def __init__(self, key: str) -> None:
        self.key, self.facts = key, dict[str, Any]()
        self.pictures: list[str] = []
        self.sidecars: list[Skipped] = []
        self.problems: list[Unreadable] = []

    def records(self) -> Iterator[Record]:
        """Labels for each picture; without one the sidecars are files like any other."""
        yield from (Labels(path, self.facts) for path in self.pictures if self.facts)
        yield from self.problems if self.pictures else self.sidecars


# -- the table beside a tar -----------------------------------------------------------------------------------------


def scan_with_table(place: str) -> Iterator[Record]:
    """Every picture of a tar, its sidecars' labels, and then what the table beside it says."""
    stem = os.path.splitext(place)[0]
    table = next((Path(stem + suffix) for suffix in _TABLES if os.path.isfile(stem + suffix)), None)
    if table is None:
        yield from scan_tar(place)
        return
    # By the name that the table has for them: `tar -cf train.tar ./train` calls its members `./train/…`
    pictures: dict[str, list[str]] = {}
    for record in scan_tar(place):
        if isinstance(record, Seen):
            pictures.setdefault(posixpath.normpath(record.path), []).append(record.path)
        yield record
    for row in label_rows(table, table.name):
        if isinstance(row, Unreadable):
            yield row
        else:
            name = posixpath.normpath(row.path)
            yield from (Labels(path, row.facts) for path in pictures.get(name, [name]))
