"""What the paths on the command line hold: folders, webdataset tars, lists of paths, single pictures.

`scan` walks one root in a fixed order and yields what it meets: a picture (`Seen`), labels for one (`Labels`), or
something that cannot be read and why (`Unreadable`), a file that is no picture (`Skipped`), or what is not looked
through (`Excluded`). Nothing is decoded here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from eyespot.extras import needed
from eyespot.photos.folders import LABEL_FILES, SHARD, FolderWalk, head_of, seen_at
from eyespot.photos.found import Excluded, Labels, Met, Record, Seen, Skipped, Unreadable
from eyespot.photos.kinds import SkippedFiles, ending_of, is_picture
from eyespot.photos.labels import LABELS_LOST, LabelError, label_rows
from eyespot.photos.names import stored_name
from eyespot.photos.pictures import SUFFIXES
from eyespot.photos.places import Root, full_path, read_again, read_bytes
from eyespot.photos.videos.addresses import VIDEO_SUFFIXES, reads_video
from eyespot.types import UsageError

__all__ = [
    "LABELS_LOST",
    "LABEL_FILES",
    "Excluded",
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

LIST_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".json")


def roots_of(path: str) -> list[Root]:
    """The root that a path means, and the shards `00000.tar`, `00001.tar`, … of a folder that has some."""
    root = root_of(path)
    names: list[str] = []
    with suppress(OSError):  # the walk says why
        names = sorted(os.listdir(root.place)) if root.kind == "folder" else []
    shards = [Root(os.path.join(root.path, name), "tar") for name in names if SHARD.fullmatch(name)]
    return [root, *shards]


def root_of(path: str) -> Root:
    """The root that a path on the command line names; `UsageError` if eyespot cannot index such a thing."""
    place = os.path.abspath(os.path.expanduser(path))
    stored = stored_name(place)
    if os.path.isdir(place):
        return Root(stored, "folder")
    if place.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")):
        raise UsageError(f"{path} is compressed; unpack it to a plain .tar or a folder first")
    suffix = ending_of(place)
    if suffix == ".tar":
        return Root(stored, "tar")
    if suffix in LIST_SUFFIXES:
        return Root(stored, "list")
    if suffix in VIDEO_SUFFIXES and not reads_video() and os.path.isfile(place):
        raise UsageError(needed(path, "av"))
    if suffix in SUFFIXES | VIDEO_SUFFIXES or (os.path.isfile(place) and is_picture(head_of(place) or b"")):
        return Root(stored, "file")
    if os.path.isfile(place):
        raise UsageError(
            f"{path} is no folder, tar, list (csv, jsonl, parquet, COCO json), picture or video that eyespot can index"
        )
    return Root(stored, "folder")  # one that is not there, perhaps on an unplugged disk


def is_there(root: Root) -> bool:
    """False for an unplugged disk or a folder with nothing in it: then what is known of the root is kept."""
    if root.kind != "folder":
        return os.path.isfile(root.place)
    try:
        with os.scandir(root.place) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def scan(root: Root) -> Iterator[Record]:
    """Everything the root holds, in the same order on every machine."""
    if root.kind == "folder":
        yield from FolderWalk(root.place)
    elif root.kind == "tar":
        from eyespot.photos.tars import scan_with_table

        yield from scan_with_table(root.place)
    elif root.kind == "list":
        for row in label_rows(Path(root.place)):
            if isinstance(row, LabelError):
                yield Unreadable(f"{os.path.basename(root.path)}:{row.line}", row.reason)
            elif "://" in row.file:
                yield Unreadable(row.file, "eyespot fetches no addresses; download the picture first")
            else:
                path = stored_name(row.file)
                yield seen_at(full_path(root, path), path)
                yield Labels(path, row.facts)
    else:
        yield seen_at(root.place, os.path.basename(root.path))


def scan_counting(
    root: Root, skipped: SkippedFiles, is_known: Callable[[Skipped], bool] = lambda _: False
) -> Iterator[Met]:
    """What `scan` yields, but the files that are no pictures or left out, which are counted.

    is_known: whether a file was read by a run that could, and so counts elsewhere.
    """
    for record in scan(root):
        if isinstance(record, Skipped) and is_known(record):
            continue
        if isinstance(record, Skipped | Excluded):
            skipped.add(record, full_path(root, record.path))
        else:
            yield record
