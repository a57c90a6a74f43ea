"""What the paths on the command line hold: folders, webdataset tars, parquet, lists of paths, single pictures.

`scan` walks one root in a fixed order and yields what it meets: a picture (`Seen`), labels for one (`Labels`), or
something that cannot be read and why (`Unreadable`), a file that is not a picture (`Skipped`), or what is not looked
through (`Excluded`). Nothing is decoded here.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyespot.extras import needed
from eyespot.photos.found import Excluded, Labels, Met, Record, Seen, Skipped, Unreadable, clamped, reason
from eyespot.photos.kinds import (
    HEAD,
    HIDDEN,
    KIND_OF,
    LINKED,
    PAIRED,
    SUFFIXES,
    SkippedFiles,
    ending_of,
    is_picture,
    skipped_by_head,
    why_left_out,
    why_left_out_below,
)
from eyespot.photos.labels import FILE_COLUMNS, label_row, label_rows, parquet_rows
from eyespot.photos.names import real_name, stored_name
from eyespot.photos.places import Root, full_path, place_alike, stat_of
from eyespot.photos.provenance import merged
from eyespot.photos.sidecars import BESIDE, is_near, pairs_in, sidecar_facts, sidecars_in
from eyespot.photos.videos.addresses import VIDEO, VIDEO_SUFFIXES, frame_at, is_video, place_of_frame, reads_video
from eyespot.storage.parquet_bytes import bytes_column, sizes
from eyespot.storage.systems import is_inside
from eyespot.types import UsageError

LABEL_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # as in the HF imagefolder layout
SHARD = re.compile(r"[0-9]{5,}\.tar")  # as img2dataset and webdataset number them; 2019.tar is somebody's archive
LIST_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".json")
_OF_QUERY = {"query", "relevant", "clip_score", "supercategory", "category", "iconic_group"}  # in INQUIRE-Rerank


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
        return Root(stored, "parquet" if suffix == ".parquet" and bytes_column(place) else "list")
    if suffix in VIDEO_SUFFIXES and not reads_video() and os.path.isfile(place):
        raise UsageError(needed(path, "av"))
    if suffix in SUFFIXES | VIDEO_SUFFIXES or (os.path.isfile(place) and is_picture(head_of(place) or b"")):
        return Root(stored, "file")
    if os.path.isfile(place):
        raise UsageError(
            f"{path} is not a folder, tar, list (csv, jsonl, parquet, COCO json), picture or video that can be indexed"
        )
    return Root(stored, "folder")  # one that is not there, perhaps on an unplugged disk


def is_there(root: Root) -> bool:
    """False for an unplugged disk or a folder with nothing in it: then what is known of the root is kept."""
    if root.kind != "folder":
        return os.path.isfile(root.place)
    with suppress(OSError), os.scandir(root.place) as entries:
        return any(True for _ in entries)
    return False


def scan(root: Root) -> Iterator[Record]:
    """Everything the root holds, in the same order on every machine."""
    if root.kind == "folder":
        yield from FolderWalk(root.place)
    elif root.kind == "tar":
        from eyespot.photos.tars import scan_with_table

        yield from scan_with_table(root.place)
    elif root.kind == "parquet":
        yield from _scan_parquet(root.place)
    elif root.kind == "list":
        yield from _scan_list(root)
    else:
        yield seen_at(root.place, os.path.basename(root.path))


def _scan_list(root: Root) -> Iterator[Record]:
    for row in label_rows(Path(root.place), os.path.basename(root.path)):
        if isinstance(row, Unreadable):
            yield row
        elif "://" in row.path:
            yield Unreadable(row.path, "eyespot fetches no addresses; download the picture first")
        else:
            place = full_path(root, path := stored_name(row.path))
            if alike := place_alike(place):
                place = alike if os.path.isabs(row.path) else os.path.relpath(alike, os.path.dirname(root.place))
                path = stored_name(place)
            yield seen_at(full_path(root, path), path)
            yield Labels(path, row.facts, row.path if alike else "")


def _scan_parquet(place: str) -> Iterator[Record]:
    """Every picture inside the file, called by its row and its name there, and the labels of each."""
    column, status = bytes_column(place) or "", os.stat(place)
    try:
        for number, (row, size) in enumerate(zip(parquet_rows(Path(place)), sizes(place), strict=True)):
            names = [column, *FILE_COLUMNS, "id", "_id", "key", *(one for one in row if one.endswith("file_name"))]
            name = next((str(row[name]) for name in names if row.get(name) not in (None, "")), "")
            path = f"{number:06}/{stored_name(name.strip('/'))}".removesuffix("/")  # so two of one name are two
            if {"query", "relevant"} <= row.keys():  # of a pair: as a label it would answer the query
                row = {name: value for name, value in row.items() if name not in _OF_QUERY}
            labels = label_row({**row, column: path}, column)
            if isinstance(labels, str):
                yield Unreadable(path, f"its row {labels}")
            elif size is None:
                yield Unreadable(path, "holds no picture")
            else:
                yield Seen(path, size, clamped(status.st_mtime_ns), number)
                yield Labels(path, labels.facts)
    except (OSError, ValueError) as error:
        yield Unreadable("", f"the parquet file cannot be read to its end ({error})")


def scan_counting(
    root: Root, skipped: SkippedFiles, is_known: Callable[[Skipped], bool] = lambda _: False
) -> Iterator[Met]:
    """What `scan` yields, but the files that are not pictures or left out, which are counted.

    is_known: whether a file was read by a run that could, and so counts elsewhere.
    """
    for record in scan(root):
        if not isinstance(record, Skipped | Excluded):
            yield record
        elif isinstance(record, Excluded) or not is_known(record):
            skipped.add(record, full_path(root, record.path))


# -- the walk through a folder ------------------------------------------------------------------------------

_Identity = tuple[int, int]


@dataclass(frozen=True)
class _Open:
    """A folder on the way from the root down to where the walk is, and what of it is still to be visited."""

    identity: _Identity
    prefix: str
    entries: Iterator[os.DirEntry[str]]
    pairs: dict[str, str]  # files that belong to a photo beside them, and that photo
    sidecars: dict[str, list[str]]  # files that may say something of photos, and these
    labels: dict[str, dict[str, Any]] = field(default_factory=dict)  # of photos, by the sidecars read so far


class FolderWalk:
    """Depth first, each folder in its order, on a stack of its own: folders may nest deeper than calls can.

    A link to a folder that the walk comes to anyway is left out, and of several links to another folder all but the
    first, so that no picture stands twice.
    """

    def __init__(self, folder: str) -> None:
        self.folder, self.real = folder, os.path.realpath(folder)
        self.way: list[_Open] = []
        self.entered: set[_Identity] = set()
        self.lying: dict[str, str] = {}  # folders as labels name them, and where those lie without links

    def __iter__(self) -> Iterator[Record]:
        yield from self._enter(self.folder, "")
        while self.way:
            entry = next(self.way[-1].entries, None)
            if entry is None:
                self.way.pop()
            else:
                yield from self._visit(entry, self.way[-1].prefix + stored_name(entry.name))

    def _visit(self, entry: os.DirEntry[str], path: str) -> Iterator[Record]:
        is_folder = False
        with suppress(OSError):  # a link that leads nowhere
            is_folder = entry.is_dir()
        if entry.name.startswith("."):
            yield Excluded(path, HIDDEN)
        elif not is_folder:
            yield from (self._scan_labels if entry.name in LABEL_FILES else self._visit_file)(entry, path)
        elif why := why_left_out(entry.name, os.path.dirname(entry.path).split("/")):
            yield Excluded(path, why, sum(len(files) for _, _, files in os.walk(entry.path)))
        elif entry.is_symlink() and self._below_root(os.path.realpath(entry.path)) not in (None, ""):
            yield Excluded(path, LINKED)
        else:
            yield from self._enter(entry.path, path + "/")

    def _visit_file(self, entry: os.DirEntry[str], path: str) -> Iterator[Record]:
        ending = ending_of(entry.name)
        if photo := self.way[-1].pairs.get(entry.name):
            yield Excluded(path, PAIRED)
            yield Labels(self.way[-1].prefix + stored_name(photo), {BESIDE: stored_name(entry.name)})
        elif ending in SUFFIXES or is_video(entry.name):
            yield seen_at(entry.path, path)
        elif photos := self.way[-1].sidecars.get(entry.name):
            yield from self._read_sidecar(entry, path, photos)
        elif entry.is_symlink() and not os.path.exists(entry.path):
            # Perhaps a folder of photos on a disk that is not plugged in.
            yield Unreadable(path + "/", "a link that leads nowhere")
        elif kind := KIND_OF.get(ending):
            yield from () if SHARD.fullmatch(path) else [Skipped(path, kind, ending)]  # a shard is a root
        else:
            try:
                yield skipped_by_head(path, head_of(entry.path)) or seen_at(entry.path, path)
            except OSError as error:
                yield Unreadable(path, reason(error))

    def _read_sidecar(self, entry: os.DirEntry[str], path: str, photos: list[str]) -> Iterator[Record]:
        try:
            facts = sidecar_facts(entry.path)
        except (OSError, ValueError) as error:
            yield Unreadable(path, reason(error) if isinstance(error, OSError) else f"a sidecar that {error}")
            return
        if facts is None:
            yield Skipped(path, KIND_OF[ending := ending_of(entry.name)], ending)
        for name in photos if facts else ():
            near = path if is_near(entry.name, name) else ""
            known = self.way[-1].labels
            known[name] = merged(facts or {}, known.get(name, {}))
            yield Labels(self.way[-1].prefix + stored_name(name), known[name], near)

    def _enter(self, folder: str, prefix: str) -> Iterator[Record]:
        try:
            status = os.stat(folder)
            # By name, but labels first: those of a folder further down then add to them
            entries = sorted(
                os.scandir(folder), key=lambda entry: (entry.name not in LABEL_FILES, os.fsencode(entry.name))
            )
        except OSError as error:
            yield Unreadable(prefix, reason(error))
            return
        identity = (status.st_dev, status.st_ino)
        if any(identity == above.identity for above in self.way):
            yield Unreadable(prefix, "a symbolic link that leads back to a folder above it")
        elif identity in self.entered:
            yield Excluded(prefix, LINKED)
        elif not any(entry.name == "gallery.toml" for entry in entries):  # a gallery holds no photos of the user's
            self.entered.add(identity)
            pairs, names = pairs_in(entries), [entry.name for entry in entries]
            pictures = [one for one in names if (ending_of(one) in SUFFIXES or is_video(one)) and one not in pairs]
            sidecars = sidecars_in(names, [name for name in pictures if not name.startswith(".")], pairs)
            self.way.append(_Open(identity, prefix, iter(entries), pairs, sidecars))

    def _below_root(self, real: str) -> str | None:
        """A real path relative to the root, if the walk comes to it without a link; None if it does not."""
        if not is_inside(real, self.real):
            return None
        below = os.path.relpath(real, self.real)
        below = "" if below == "." else below
        return None if below.startswith(".") or "/." in below or why_left_out_below(below) else below

    def _scan_labels(self, entry: os.DirEntry[str], path: str) -> Iterator[Record]:
        for row in label_rows(Path(entry.path), path):
            if isinstance(row, Unreadable):
                yield row
            else:
                below = posixpath.normpath(self.way[-1].prefix + stored_name(row.path))
                folder, name = posixpath.split(below)
                if folder not in self.lying:
                    real = self._below_root(os.path.realpath(os.path.join(self.folder, real_name(folder))))
                    self.lying[folder] = folder if real is None else stored_name(real)
                yield Labels(posixpath.join(self.lying[folder], name), row.facts)


def seen_at(place: str, path: str) -> Seen | Unreadable:
    """A picture or video that lies at `place` and is stored as `path`."""
    frame = frame_at(place)  # which a list may name
    try:
        status = stat_of(place if frame is None else frame.video)
    except OSError as error:
        return Unreadable(path, reason(error))
    offset = place_of_frame(frame.ms) if frame else VIDEO if is_video(place) else -1
    return Seen(path, status.st_size, clamped(status.st_mtime_ns), offset, clamped(status.st_ctime_ns))


def head_of(place: str) -> bytes | None:
    """The first bytes of a file; None for a pipe, which would let nobody go."""
    if not stat.S_ISREG(os.stat(place).st_mode):
        return None
    with open(place, "rb", buffering=0) as file:
        return file.read(HEAD)
