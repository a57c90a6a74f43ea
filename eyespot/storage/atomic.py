"""Files and folders that are there whole or not at all, also after a power cut.

They are written under a hidden name next to their own, flushed to the disk, and renamed; then the folder above is
flushed, which makes the name last. What had the name before stays until then.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from eyespot.types import UsageError

ELSEWHERE = "choose another place with -g"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_HERE = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends well."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            yield file
        put_file(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Put a file in place only once it is whole and on the disk; gzipped if its name ends in .gz."""
    try:
        with new_file(path) as file:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    write(packed)  # type: ignore[arg-type]
            else:
                write(file)
    except FileNotFoundError:
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to; make it first") from None


def put_file(temporary: Path, path: Path) -> None:
    """Flush a finished file and give it its name."""
    flush(temporary)
    temporary.replace(path)
    flush(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `path` when the block ends well; folders above it are made."""
    building, before = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.old")
    if before.exists() and not path.exists():  # a kill came between the two renames
        before.rename(path)
    for leftover in (building, before):
        shutil.rmtree(leftover, ignore_errors=True)
    make_folder(building)
    try:
        yield building
        put_folder(building, path)
    finally:
        shutil.rmtree(building, ignore_errors=True)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends well; `UsageError` if the name is taken."""
    out = out.absolute()
    _refuse_taken(out)
    with new_folder(out) as building:
        yield building
        _refuse_taken(out)  # another run may have filled it meanwhile


def _refuse_taken(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already and not empty; name a new folder")


def put_folder(building: Path, path: Path) -> None:
    """Flush a finished folder with all that is in it, give it its name, and remove the folder that had it."""
    for place, _, names in os.walk(building, topdown=False):
        for file in (os.path.join(place, name) for name in names):
            if not os.path.islink(file):
                flush(file)
        flush(place)
    before = path.with_name(f".{path.name}.old")  # for a moment, on systems that cannot exchange two names
    if not path.exists():
        building.rename(path)
    elif not _exchanged(building, path):
        path.rename(before)
        building.rename(path)
    flush(path.parent)
    for old in (building, before):
        shutil.rmtree(old, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """A folder and those above it, which last from now on."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush(folder.parent)


def flush(place: Path | str) -> None:
    """Put a file, or the names in a folder, on the disk."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_line(file: IO[bytes], line: bytes) -> None:
    """Write a line to a log; it is on the disk when this returns."""
    is_first = not os.fstat(file.fileno()).st_size
    file.write(line)
    file.flush()
    os.fsync(file.fileno())
    if is_first:  # the log may be new, and then its name is not on the disk yet
        flush(Path(file.name).parent)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders exchange their names in one step; False where the system or its disk cannot."""
    library, names = ctypes.CDLL(None), (os.fsencode(one), os.fsencode(other))
    sys.audit("os.rename", one, other, -1, -1)  # as Python's own renames do
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _EXCHANGE)
    else:
        return False
    return not failed


def trouble(error: Exception, *, elsewhere: str = "choose another place", damaged: str = "", other: str = "") -> str:
    """Why a store cannot be read or written and the way out, as the end of a sentence; room helps a full disk alone.

    elsewhere, damaged, other: the ways out that this store has where it may not be written, is damaged, or else fails.
    """
    why, number = (getattr(error, "strerror", None) or str(error)).lower(), getattr(error, "errno", None)
    code = getattr(error, "sqlite_errorname", "")
    if number in FULL or code in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"):  # the last is a "disk I/O error" to SQLite
        why = os.strerror(number or errno.ENOSPC).lower()
        way_out = "make room and run the same line again; what is done is kept"
    elif number == errno.EROFS:
        way_out = f"its disk may only be read; {elsewhere}"
    elif isinstance(error, PermissionError) or code.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
        file = os.path.normpath(getattr(error, "filename", None) or "")
        way_out = f"give yourself the right to {file if os.path.isfile(file) else f'it, or {elsewhere}'}"
    elif code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        way_out = "end the program that uses it, or run the same line again later"
    elif code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        way_out = damaged or "put it back from a copy"
    else:
        way_out = other or f"make room if its disk is full, check that it is sound, or {elsewhere}"
    return f"({why}); {way_out}"
