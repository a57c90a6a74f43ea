"""Pictures inside a tar, with the sidecars of webdataset: `key.json`, `key.txt`, `key.cls` label the pictures of a key.

Webdataset keeps the files of a key together. Archives that do not are read as well while no more than `OPEN_KEYS` keys
lie between a picture and its sidecar; what lies farther apart is told.

A table may lie beside the tar, by its name, and names pictures by the member they are: `train.json` beside `train.tar`
(COCO JSON, as iNaturalist's data sets come).
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from eyespot.photos.found import Excluded, Labels, Record, Seen, Skipped, Unreadable, clamped, refuse_size
from eyespot.photos.kinds import HEAD, KIND_OF, skipped_by_head, why_left_out_below
from eyespot.photos.labels import label_rows, sidecar
from eyespot.photos.names import stored_name
from eyespot.photos.pictures import SUFFIXES

OPEN_KEYS = 10_000
_TABLES = (".json", ".jsonl", ".csv", ".tsv")  # beside a tar, by its name
_TORN = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError)  # what headers full of noise end in


def scan_tar(place: str) -> Iterator[Record]:
    """Every picture of the archive in its order, and the labels of each."""
    samples = _Samples()
    try:
        with tarfile.open(place, "r:") as archive:
            for member in archive:
                if member.isreg():
                    yield from _scan_member(archive, member, samples)
                    yield from samples.overdue()
            # Whether an archive's end mark stands where its last member ends; tarfile takes a torn header
            # for the end
            with open(place, "rb") as file:
                file.seek(archive.offset)
                if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                    yield Unreadable("", "the tar cannot be read to its end (cut short?)")
    except _TORN as error:
        yield Unreadable("", f"the tar cannot be read to its end ({error})")
    yield from samples.rest()


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


def _scan_member(archive: tarfile.TarFile, member: tarfile.TarInfo, samples: _Samples) -> Iterator[Record]:
    name = stored_name(member.name)
    folder, _, base = name.rpartition("/")
    stem, _, endings = base.partition(".")
    key, suffix = f"{folder}/{stem}", "." + endings.lower().rpartition(".")[2]  # as webdataset has them
    if why := why_left_out_below(os.path.dirname(member.name)):
        yield Excluded(name, why)
        return
    labels = sidecar(suffix, archive, member)
    file = None if suffix in SUFFIXES or suffix in KIND_OF else archive.extractfile(member)
    head = file.read(HEAD) if file else None
    if isinstance(labels, str):
        samples.open[key][2].append((name, labels))
    elif labels is not None:
        samples.open[key][1].update(labels)
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
        samples.open[key][0].append(name)


class _Samples:
    """The keys that may still grow, the oldest first: the pictures, facts and problems that were met of each so far."""

    def __init__(self) -> None:
        self.open = defaultdict[str, tuple[list[str], dict[str, Any], list[tuple[str, str]]]](lambda: ([], {}, []))
        self.halves: set[int] = set()  # hashes of keys that were let go with pictures alone or labels alone
        self.parted: list[str] = []

    def overdue(self, most: int | None = None) -> Iterator[Record]:
        """What is let go, so that memory stays bounded."""
        while len(self.open) > (OPEN_KEYS if most is None else most):
            yield from self._let_go(next(iter(self.open)))

    def rest(self) -> Iterator[Record]:
        """All that is left at the end, and how much came too late."""
        yield from self.overdue(0)
        if self.parted:
            first, more = self.parted[0].removeprefix("/"), len(self.parted) - 1
            too = f" (and so do those of {more} other keys)" if more else ""
            yield Unreadable(first, f"its labels lie too far from its picture{too}; keep the files of a key together")

    def _let_go(self, key: str) -> Iterator[Record]:
        pictures, facts, problems = self.open.pop(key)
        if bool(facts) != bool(pictures):
            if hash(key) in self.halves:
                self.parted.append(key)
            self.halves.add(hash(key))
        yield from (Labels(path, facts) for path in pictures if facts)
        yield from (Unreadable(name, reason) for name, reason in problems if pictures)


# -- the table beside a tar -----------------------------------------------------------------------------------------


def table_beside(place: str) -> Path | None:
    """The table of a tar, if there is one."""
    stem = os.path.splitext(place)[0]
    return next((Path(stem + suffix) for suffix in _TABLES if os.path.isfile(stem + suffix)), None)


def scan_with_table(place: str) -> Iterator[Record]:
    """Every picture of a tar, its sidecars' labels, and then what the table beside it says."""
    table = table_beside(place)
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
