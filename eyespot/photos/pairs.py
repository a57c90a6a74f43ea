"""Files that are one photo with another beside them: the RAW of a JPEG, and the moment of video of a live photo.

They have the photo's name with another ending, and were written within a minute of it. An export that somebody made
later is a picture of its own, and so is a video of more than a few seconds: its photo is a poster.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from eyespot.photos.kinds import ending_of
from eyespot.photos.raw import RAW_SUFFIXES

BESIDE = "beside"  # the label of a photo that names the other file
SECONDS = 60.0
LONGEST = 6.0  # seconds of a moment; phones film some three
_BOXES = 64  # of a file's first ones that are looked at
_PHOTOS = frozenset({".jpg", ".jpeg", ".heic", ".heif", ".hif"})
_MOMENTS = frozenset({".mov", ".mp4"})


def pairs_in(entries: Sequence[os.DirEntry[str]]) -> dict[str, str]:
    """The files of a folder that belong to a photo in it, each with that photo, by their names."""
    others = [entry for entry in entries if ending_of(entry.name) in RAW_SUFFIXES | _MOMENTS]
    if not others:
        return {}
    photos = {os.path.splitext(entry.name)[0]: entry for entry in entries if ending_of(entry.name) in _PHOTOS}
    pairs = {}
    for entry in others:
        photo = photos.get(os.path.splitext(entry.name)[0])
        with suppress(OSError):  # a link that leads nowhere
            if photo and entry.is_file() and abs(entry.stat().st_mtime - photo.stat().st_mtime) <= SECONDS:
                if ending_of(entry.name) in _MOMENTS and (_length(entry.path) or 0) > LONGEST:
                    continue
                pairs[entry.name] = photo.name
    return pairs


def _length(place: str) -> float | None:
    """Seconds of an MP4 or QuickTime file by its movie header, without a decoder; None if it does not say."""
    with open(place, "rb") as file:
        moov = _box(file, b"moov", os.fstat(file.fileno()).st_size)
        if moov is None or _box(file, b"mvhd", moov) is None:
            return None
        head = file.read(32).ljust(32, b"\0")
    wide = head[:1] == b"\1"  # times of eight bytes
    rate, ticks = struct.unpack_from(">IQ" if wide else ">II", head, 20 if wide else 12)
    unknown = (0, (1 << 64 if wide else 1 << 32) - 1)
    return ticks / rate if rate and ticks not in unknown else None


def _box(file: BinaryIO, name: bytes, end: int) -> int | None:
    """Go to what the next box of this name before `end` holds, and say where that ends; None if there is none."""
    for _ in range(_BOXES):
        start = file.tell()
        head = file.read(16)
        if start >= end or len(head) < 8:
            return None
        size, used = int.from_bytes(head[:4]), 8
        if size == 1:
            size, used = int.from_bytes(head[8:16]), 16
        stop = start + size if size else end
        if head[4:8] == name:
            file.seek(start + used)
            return min(stop, end)
        if (size and size < used) or stop >= end:
            return None
        file.seek(stop)
    return None
