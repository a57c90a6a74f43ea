"""What the paths on the command line hold: folders, webdataset tars, lists of paths, single pictures.

`scan` walks one root in a fixed order and yields what it meets: a picture (`Seen`), labels for one (`Labels`), or
something that cannot be read and why (`Unreadable`). Nothing is decoded here.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eyespot.gallery.photos.labels import LabelError, label_rows
from eyespot.gallery.photos.pictures import SUFFIXES
from eyespot.types import UsageError

LABEL_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # as in the HF imagefolder layout
LIST_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
MAX_FILE_BYTES = 512 << 20


class Root(NamedTuple):
    """One place that was indexed; its kind says how to read it again."""

    path: str  # absolute
    kind: str  # folder | tar | list | file


class Seen(NamedTuple):
    """A picture where it lies now; `offset` is its place inside a tar, else -1."""

    path: str  # relative to the root
    size: int
    mtime: int  # nanoseconds
    offset: int = -1


class Labels(NamedTuple):
    """Label columns for one picture of the root."""

    path: str
    facts: dict[str, Any]


class Unreadable(NamedTuple):
    """Something the walk could not enter; a path that ends in `/` stands for all that lies below it."""

    path: str
    reason: str


Record: TypeAlias = Seen | Labels | Unreadable


def root_of(path: str) -> Root:
    """The root that a path on the command line names; `UsageError` if eyespot cannot index such a thing."""
    place = os.path.abspath(os.path.expanduser(path))
    suffix = Path(place).suffix.lower()
    if place.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")):
        raise UsageError(f"{path} is compressed; unpack it to a plain .tar or a folder first")
    if suffix == ".tar":
        return Root(place, "tar")
    if suffix in LIST_SUFFIXES:
        return Root(place, "list")
    if suffix in SUFFIXES and not os.path.isdir(place):
        return Root(place, "file")
    if os.path.isfile(place):
        raise UsageError(f"{path} is no folder, tar, list (csv, jsonl, parquet) or picture that eyespot can index")
    return Root(place, "folder")


def is_there(root: Root) -> bool:
    """False for an unplugged disk or a folder with nothing in it: then what is known of the root is kept."""
    if root.kind != "folder":
        return os.path.isfile(root.path)
    try:
        with os.scandir(root.path) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def full_path(root: Root, path: str) -> str:
    """Where a picture lies, for people and programs; inside a tar it is `archive.tar/member`."""
    if root.kind == "file":
        return root.path
    base = os.path.dirname(root.path) if root.kind == "list" else root.path
    return os.path.join(base, path)


def read_bytes(root: Root, seen: Seen) -> bytes:
    """The picture's bytes as they are now; OSError if they are gone."""
    if root.kind == "tar":
        with open(root.path, "rb") as archive:
            archive.seek(seen.offset)
            return archive.read(seen.size)
    place = full_path(root, seen.path)
    _refuse_odd(os.stat(place))
    with open(place, "rb") as file:
        return file.read()


def read_again(place: str) -> bytes:
    """The bytes of a picture by its full path, also inside a tar (`archive.tar/member`); OSError if it is gone."""
    archive, inside, member = place.partition(".tar/")
    if not inside or os.path.exists(place):
        return read_bytes(Root(place, "file"), Seen("", 0, 0))
    with tarfile.open(archive + ".tar", "r:") as tar:
        try:
            file = tar.extractfile(member)
        except (KeyError, tarfile.TarError) as error:
            raise OSError("gone from its tar") from error
        return file.read() if file else b""


def scan(root: Root) -> Iterator[Record]:
    """Everything the root holds, in the same order on every machine."""
    if root.kind == "folder":
        yield from _scan_folder(root.path, "", [])
    elif root.kind == "tar":
        yield from _scan_tar(root.path)
    elif root.kind == "list":
        yield from _scan_list(root)
    else:
        yield _stat(root.path, os.path.basename(root.path))


def _refuse_odd(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        raise OSError(f"{status.st_size >> 20} MiB, over the limit of {MAX_FILE_BYTES >> 20} MiB a file")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _stat(place: str, path: str) -> Seen | Unreadable:
    try:
        path.encode()
        status = os.stat(place)
        _refuse_odd(status)
    except UnicodeEncodeError:
        return Unreadable(os.fsencode(path).decode("utf-8", "backslashreplace"), "its name is not valid UTF-8")
    except OSError as error:
        return Unreadable(path, _reason(error))
    return Seen(path, status.st_size, status.st_mtime_ns)


def _scan_folder(folder: str, prefix: str, above: list[tuple[int, int]]) -> Iterator[Record]:
    try:
        status = os.stat(folder)
        entries = sorted(os.scandir(folder), key=_in_order)
    except OSError as error:
        yield Unreadable(prefix, _reason(error))
        return
    here = (status.st_dev, status.st_ino)
    if here in above:
        yield Unreadable(prefix, "a symbolic link that leads back to a folder above it")
        return
    if any(entry.name == "gallery.toml" for entry in entries):
        return  # a gallery's own folder holds no photos of the user's
    for entry in entries:
        yield from _scan_entry(entry, prefix, [*above, here])


def _in_order(entry: os.DirEntry[str]) -> tuple[bool, bytes]:
    """By name, but labels first: those of a folder further down then add to them."""
    return entry.name not in LABEL_FILES, os.fsencode(entry.name)


def _scan_entry(entry: os.DirEntry[str], prefix: str, above: list[tuple[int, int]]) -> Iterator[Record]:
    if entry.name.startswith(".") or entry.name == "@eaDir":
        return  # hidden files and the thumbnail folders of NAS boxes
    path = prefix + entry.name
    if _is_folder(entry):
        yield from _scan_folder(entry.path, path + "/", above)
    elif entry.name in LABEL_FILES:
        yield from _scan_labels(entry.path, prefix, path)
    elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
        yield _stat(entry.path, path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads nowhere; `_stat` says why


def _scan_labels(place: str, prefix: str, path: str) -> Iterator[Record]:
    for row in label_rows(Path(place)):
        if isinstance(row, LabelError):
            yield Unreadable(f"{path}:{row.line}" if row.line else path, row.reason)
        else:
            yield Labels(os.path.normpath(prefix + row.file), row.facts)


def _scan_list(root: Root) -> Iterator[Record]:
    for row in label_rows(Path(root.path)):
        if isinstance(row, LabelError):
            yield Unreadable(f"{os.path.basename(root.path)}:{row.line}", row.reason)
        elif "://" in row.file:
            yield Unreadable(row.file, "eyespot fetches no addresses; download the picture first")
        else:
            yield _stat(full_path(root, row.file), row.file)
            yield Labels(row.file, row.facts)


def _scan_tar(place: str) -> Iterator[Record]:
    """Members of a webdataset tar; `key.json`, `key.txt` and `key.cls` become labels of the pictures of that key."""
    from eyespot.gallery.photos.labels import sidecar

    pictures: dict[str, list[str]] = {}
    facts: dict[str, dict[str, Any]] = {}
    try:
        with tarfile.open(place, "r:") as archive:
            for member in archive:
                key, suffix = _split_key(member.name)
                if not member.isreg():
                    continue
                if suffix in SUFFIXES:
                    pictures.setdefault(key, []).append(member.name)
                    yield Seen(member.name, member.size, int(member.mtime) * 10**9, member.offset_data)
                elif (found := sidecar(suffix, archive, member)) is not None:
                    facts.setdefault(key, {}).update(found)
                if len(pictures) > 1 and key != next(iter(pictures)):
                    yield from _labels_of(pictures, facts, keep=key)
            if not _ends_well(place, archive.offset):
                yield Unreadable("", "the tar cannot be read to its end (cut short?)")
    except (tarfile.TarError, OSError, EOFError) as error:
        yield Unreadable("", f"the tar cannot be read to its end ({error})")
    yield from _labels_of(pictures, facts, keep=None)


def _ends_well(place: str, end: int) -> bool:
    """Whether an archive's end mark stands where its last member ends; tarfile takes a torn header for the end."""
    with open(place, "rb") as file:
        file.seek(end)
        return file.read(tarfile.BLOCKSIZE) == bytes(tarfile.BLOCKSIZE)


def _split_key(name: str) -> tuple[str, str]:
    folder, _, base = name.rpartition("/")
    key, _, suffix = base.partition(".")
    return f"{folder}/{key}", "." + suffix.lower().rpartition(".")[2]


def _labels_of(pictures: dict[str, list[str]], facts: dict[str, dict[str, Any]], keep: str | None) -> Iterator[Labels]:
    """Labels of every finished key, forgotten once given; `keep` is the key that may still grow."""
    for key in [key for key in pictures if key != keep]:
        known = facts.pop(key, None)
        for path in pictures.pop(key):
            if known:
                yield Labels(path, known)
