"""Files that people give: gzipped or not, UTF-8, bounded; errors name the file and the line."""

from __future__ import annotations

import gzip
import zlib
from io import FileIO
from pathlib import Path
from typing import NoReturn

from eyespot.types import UsageError

EXPANSION = 100  # times its size that a gzipped file may unfold to: rankings reach 20, a bomb 1,000
ALLOWANCE = 64 << 20  # bytes that a gzipped file may unfold to, however small it is


def refuse(path: Path, where: str, reason: str) -> NoReturn:
    """`UsageError` that names file and place: "run.txt, line 3: has 2 fields; expected …"."""
    raise UsageError(f"{path}{', ' if where else ''}{where}: {reason}")


def holds_something(place: Path) -> bool:
    """Whether a file has bytes, or a folder entries: a download that was cut may leave neither."""
    if place.is_dir():
        return next(place.iterdir(), None) is not None
    return place.exists() and place.stat().st_size > 0


def data_of(path: Path) -> bytes:
    """A file's bytes, unzipped if it is gzipped; `UsageError` if it is not there or unfolds beyond all measure."""
    try:
        with path.open("rb", buffering=0) as file:  # a buffer would cost a second copy of a large file
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _unpacked(path, file) if packed else file.readall()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder; name the file in it, or its layout with --format") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); fetch or unpack it again") from None


def _unpacked(path: Path, file: FileIO) -> bytes:
    limit = ALLOWANCE + EXPANSION * path.stat().st_size
    with gzip.open(file) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise UsageError(f"{path} unfolds to more than {EXPANSION} times its size; unpack it yourself if you trust it")
    return data


def text_of(path: Path) -> str:
    """A file's text without its byte order mark; `UsageError` names the line that is not UTF-8."""
    return decoded(path, data_of(path))


def decoded(path: Path, data: bytes) -> str:
    """The same of the file's bytes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refuse(path, f"line {line}", "is not UTF-8; save the file as UTF-8")
