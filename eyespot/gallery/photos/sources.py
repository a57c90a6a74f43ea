"""What the paths on the command line hold: folders, webdataset tars, lists of paths, single pictures.

`scan` walks one root in a fixed order and yields what it meets: a picture (`Seen`), labels for one (`Labels`), or
something that cannot be read and why (`Unreadable`), or a file that is no picture (`Skipped`). Nothing is decoded here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from eyespot.gallery.photos.found import (
    NOT_UTF8,
    Labels,
    Met,
    Record,
    Seen,
    Skipped,
    Unreadable,
    clamped,
    is_utf8,
    reason,
    spelled_out,
)
from eyespot.gallery.photos.kinds import HIDDEN, KIND_OF, SkippedFiles, ending_of, skipped_by_head
from eyespot.gallery.photos.labels import LABELS_LOST, LabelError, label_rows
from eyespot.gallery.photos.pictures import SUFFIXES
from eyespot.gallery.photos.places import Root, full_path, read_again, read_bytes, stat_of
from eyespot.gallery.photos.signatures import HEAD, is_picture
from eyespot.types import UsageError

__all__ = [
    "LABELS_LOST",
    "LABEL_FILES",
    "Labels",
    "Met",
    "Record",
    "Root",
    "Seen",
    "Skipped",
    "SkippedFiles",
    "Unreadable",
    "full_path",
    "is_there",
    "read_again",
    "read_bytes",
    "root_of",
    "roots_of",
    "scan",
    "scan_counting",
]

LABEL_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # as in the HF imagefolder layout
_SHARD = re.compile(r"[0-9]{5,}\.tar")  # as img2dataset and webdataset number them; 2019.tar is somebody's archive
LIST_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".json")


def roots_of(path: str) -> list[Root]:
    """The root that a path means, and the shards `00000.tar`, `00001.tar`, … of a folder that has some."""
    root = root_of(path)
    names: list[str] = []
    with suppress(OSError):  # the walk says why
        names = sorted(os.listdir(root.path)) if root.kind == "folder" else []
    shards = [Root(os.path.join(root.path, name), "tar") for name in names if _SHARD.fullmatch(name)]
    return [root, *shards]


def root_of(path: str) -> Root:
    """The root that a path on the command line names; `UsageError` if eyespot cannot index such a thing."""
    place = os.path.abspath(os.path.expanduser(path))
    if not is_utf8(place):
        raise UsageError(f"the name of {spelled_out(place)} is not valid UTF-8; rename it and run again")
    if os.path.isdir(place):
        return Root(place, "folder")
    if place.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")):
        raise UsageError(f"{path} is compressed; unpack it to a plain .tar or a folder first")
    suffix = ending_of(place)
    if suffix == ".tar":
        return Root(place, "tar")
    if suffix in LIST_SUFFIXES:
        return Root(place, "list")
    if suffix in SUFFIXES or (os.path.isfile(place) and is_picture(_head(place) or b"")):
        return Root(place, "file")
    if os.path.isfile(place):
        raise UsageError(
            f"{path} is no folder, tar, list (csv, jsonl, parquet, COCO json) or picture that eyespot can index"
        )
    return Root(place, "folder")  # one that is not there, perhaps on an unplugged disk


def is_there(root: Root) -> bool:
    """False for an unplugged disk or a folder with nothing in it: then what is known of the root is kept."""
    if root.kind != "folder":
        return os.path.isfile(root.path)
    try:
        with os.scandir(root.path) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def scan(root: Root) -> Iterator[Record]:
    """Everything the root holds, in the same order on every machine."""
    if root.kind == "folder":
        yield from _scan_folder(root.path)
    elif root.kind == "tar":
        from eyespot.gallery.photos.beside import scan_with_table

        yield from scan_with_table(root.path)
    elif root.kind == "list":
        for row in label_rows(Path(root.path)):
            if isinstance(row, LabelError):
                yield Unreadable(f"{os.path.basename(root.path)}:{row.line}", row.reason)
            elif "://" in row.file:
                yield Unreadable(row.file, "eyespot fetches no addresses; download the picture first")
            else:
                yield _stat(full_path(root, row.file), row.file)
                yield Labels(row.file, row.facts)
    else:
        yield _stat(root.path, os.path.basename(root.path))


def scan_counting(root: Root, skipped: SkippedFiles) -> Iterator[Met]:
    """What `scan` yields, but the files that are no pictures, which are counted."""
    for record in scan(root):
        if isinstance(record, Skipped):
            skipped.add(record, full_path(root, record.path))
        else:
            yield record


def _stat(place: str, path: str) -> Seen | Unreadable:
    if not is_utf8(path):
        return Unreadable(spelled_out(path), NOT_UTF8)
    try:
        status = stat_of(place)
    except OSError as error:
        return Unreadable(path, reason(error))
    return Seen(path, status.st_size, clamped(status.st_mtime_ns))


# -- folders ------------------------------------------------------------------------------------------------


class _Open(NamedTuple):
    """A folder on the way from the root down to where the walk is, and what of it is still to be looked at."""

    identity: tuple[int, int]
    prefix: str
    entries: Iterator[os.DirEntry[str]]


def _scan_folder(folder: str) -> Iterator[Record]:
    """Depth first, each folder in its order, on a stack of its own: folders may nest deeper than calls can."""
    way: list[_Open] = []
    yield from _enter(folder, "", way)
    while way:
        entry = next(way[-1].entries, None)
        if entry is None:
            way.pop()
        elif entry.name.startswith(".") or entry.name == "@eaDir":  # the latter: thumbnails of NAS boxes
            yield Skipped(spelled_out(way[-1].prefix + entry.name), HIDDEN, "")
        else:
            yield from _scan_entry(entry, way)


def _enter(folder: str, prefix: str, way: list[_Open]) -> Iterator[Record]:
    try:
        status = os.stat(folder)
        # By name, but labels first: those of a folder further down then add to them
        entries = sorted(os.scandir(folder), key=lambda entry: (entry.name not in LABEL_FILES, os.fsencode(entry.name)))
    except OSError as error:
        yield Unreadable(prefix, reason(error))
        return
    identity = (status.st_dev, status.st_ino)
    if any(identity == above.identity for above in way):
        yield Unreadable(prefix, "a symbolic link that leads back to a folder above it")
    elif not any(entry.name == "gallery.toml" for entry in entries):  # a gallery holds no photos of the user's
        way.append(_Open(identity, prefix, iter(entries)))


def _scan_entry(entry: os.DirEntry[str], way: list[_Open]) -> Iterator[Record]:
    path, is_folder = way[-1].prefix + entry.name, False
    with suppress(OSError):  # a link that leads nowhere
        is_folder = entry.is_dir()
    if is_folder:
        if is_utf8(path):
            yield from _enter(entry.path, path + "/", way)
        else:
            yield Unreadable(spelled_out(path) + "/", NOT_UTF8)
    elif entry.name in LABEL_FILES:
        yield from _scan_labels(entry.path, way[-1].prefix, path)
    elif (ending := ending_of(entry.name)) in SUFFIXES:
        yield _stat(entry.path, path)
    elif entry.is_symlink() and not os.path.exists(entry.path):
        # Perhaps a folder of photos on a disk that is not plugged in.
        yield Unreadable(spelled_out(path) + "/", "a link that leads nowhere")
    elif kind := KIND_OF.get(ending):
        yield from () if _SHARD.fullmatch(path) else [Skipped(spelled_out(path), kind, ending)]  # a shard is a root
    else:
        try:
            yield skipped_by_head(spelled_out(path), _head(entry.path)) or _stat(entry.path, path)
        except OSError as error:
            yield Unreadable(spelled_out(path), reason(error))


def _scan_labels(place: str, prefix: str, path: str) -> Iterator[Record]:
    for row in label_rows(Path(place)):
        if isinstance(row, LabelError):
            yield Unreadable(f"{path}:{row.line}" if row.line else path, row.reason)
        else:
            yield Labels(os.path.normpath(prefix + row.file), row.facts)


def _head(place: str) -> bytes | None:
    """The first bytes of a file; None for a pipe, which would let nobody go."""
    if not stat.S_ISREG(os.stat(place).st_mode):
        return None
    with open(place, "rb", buffering=0) as file:
        return file.read(HEAD)
