"""A zip that is written while it is sent, with the same bytes each time, so that a download that was cut goes on.

Its files are stored as they are. The size and CRC-32 of each are remembered when it is first read: what lies before a
cut is passed over, and not read again.
"""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from fastapi import Response
from starlette.responses import StreamingResponse

from eyespot.web._problems import Problem

PIECE = 1 << 20  # bytes sent at once, at least: each piece waits behind other people's searches
OLDEST, LATEST = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)  # times that a zip can hold
RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})|bytes=-([0-9]{1,18})")
# What was read so far: the size and CRC-32 of each photo by its number, or why it cannot be read
ReadFiles: TypeAlias = dict[int, tuple[int, int] | str]


@dataclass(frozen=True)
class ZipPhoto:
    """A photo: its name in the zip, what reads its bytes, and when it was taken (ISO 8601), "" for untold."""

    name: str
    read: Callable[[], bytes]
    taken: str = ""


@dataclass(frozen=True)
class StoredZip:
    """Photos in order, then the texts that are made of what could be read; `known` is shared with later downloads."""

    photos: Sequence[ZipPhoto]
    texts: Callable[[ReadFiles], Iterable[tuple[str, bytes]]]
    known: ReadFiles

    def length(self) -> int:
        """The bytes of the whole; what nobody has read yet is read for it."""
        return sum(length for length, _ in self._parts(sys.maxsize))

    def pieces(self, start: int = 0, stop: int = sys.maxsize) -> Iterator[bytes]:
        """The bytes from `start` to `stop`, a megabyte or more at once; OSError if a photo has changed meanwhile."""
        at, held = 0, bytearray()
        for length, part in self._parts(start):
            held += part[max(0, start - at) : max(0, stop - at)]
            at += length
            if len(held) >= PIECE:
                yield bytes(held)
                held.clear()
            if at >= stop:
                break
        yield bytes(held)

    def _parts(self, start: int) -> Iterator[tuple[int, bytes]]:
        """The length of each part and its bytes, which are not read where it ends before `start`."""
        at, infos = 0, []
        for info, read in self._files():
            info.header_offset = at
            head = info.FileHeader()
            length = len(head) + info.file_size
            yield length, head + read() if at + length > start else b""
            at += length
            infos.append(info)
        end = _Directory()
        end.at = at
        with zipfile.ZipFile(end, "w") as archive:  # type: ignore[call-overload]
            archive.filelist.extend(infos)
            archive.comment = b""  # without a change it would write nothing
        yield len(end), bytes(end)

    def _files(self) -> Iterator[tuple[zipfile.ZipInfo, Callable[[], bytes]]]:
        for number, photo in enumerate(self.photos):
            data = None
            if number not in self.known:
                try:
                    data = photo.read()
                    self.known.setdefault(number, (len(data), zlib.crc32(data)))
                except (OSError, Problem) as error:
                    self.known.setdefault(number, str(error))
            if isinstance(known := self.known[number], tuple):
                yield _info(photo.name, photo.taken, *known), partial(self._data, number, data)
        for name, data in self.texts(self.known):
            yield _info(name, "", len(data), zlib.crc32(data)), partial(bytes, data)

    def _data(self, number: int, data: bytes | None) -> bytes:
        data = self.photos[number].read() if data is None else data
        if (len(data), zlib.crc32(data)) != self.known[number]:
            raise OSError(f"{self.photos[number].name} has changed since the download began")
        return data


class _Directory(bytearray):
    """Where the end of a zip is written, which begins at byte `at`."""

    at = 0

    def write(self, data: bytes) -> int:
        self.extend(data)
        return len(data)

    def tell(self) -> int:
        return self.at + len(self)

    def flush(self) -> None:
        pass


def _info(name: str, taken: str, size: int, crc: int) -> zipfile.ZipInfo:
    when = OLDEST
    with suppress(ValueError):
        when = datetime.fromisoformat(taken).timetuple()[:6]
    info = zipfile.ZipInfo(name, min(max(when, OLDEST), LATEST))
    info.file_size, info.compress_size, info.CRC = size, size, crc
    return info


def zip_response(made: StoredZip, tag: str, asked: Mapping[str, str], headers: Mapping[str, str]) -> Response:
    """The zip, or the one range of it that the headers of a request ask for (RFC 9110, 14); `tag` names its bytes."""
    how: dict[str, Any] = {
        "media_type": "application/zip",
        "headers": {**headers, "ETag": tag, "Accept-Ranges": "bytes"},
    }
    found = RANGE.fullmatch(asked.get("range", "").replace(" ", ""))
    if found is None or asked.get("if-range", tag) != tag:
        return StreamingResponse(made.pieces(), **how)
    first, last, suffix = found.groups()
    length = made.length()
    start = max(0, length - int(suffix)) if first is None else int(first)
    stop = min(length, int(last) + 1) if last else length
    if start >= length:
        raise Problem(416, f"this file has {length} bytes; load it anew", {"Content-Range": f"bytes */{length}"})
    if start >= stop:  # no range at all
        return StreamingResponse(made.pieces(), **how)
    how["headers"] |= {"Content-Range": f"bytes {start}-{stop - 1}/{length}", "Content-Length": str(stop - start)}
    return StreamingResponse(made.pieces(start, stop), 206, **how)
