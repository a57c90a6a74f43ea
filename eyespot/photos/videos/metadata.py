"""What a video says about itself: when, where and with which camera it was taken, and texts."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, BinaryIO

from eyespot.photos.embedded_facts import camera_name, one_line
from eyespot.photos.provenance import best_date, best_position

_APPLE_DATE = "com.apple.quicktime.creationdate"
_PLACE = ("com.apple.quicktime.location.iso6709", "location", "location-eng")
_MAKE = ("com.apple.quicktime.make", "make", "com.android.manufacturer")
_MODEL = ("com.apple.quicktime.model", "model", "com.android.model")
_TEXTS = {
    "embedded_title": ("title", "com.apple.quicktime.title"),
    "embedded_description": ("description", "comment", "com.apple.quicktime.description"),
    "embedded_keywords": ("keywords", "com.apple.quicktime.keywords"),
}
_ISO_6709 = re.compile(r"([+-])([0-9]{2,6}(?:\.[0-9]+)?)([+-])([0-9]{3,7}(?:\.[0-9]+)?)(?:[+-][0-9.]+)?(?:CRS.*)?/?")
_LONGEST = 2000  # characters of a text
_NO_CLOCK = ("1904-01-01", "1970-01-01")  # what cameras without one write
_BOXES = 64  # of a file's first ones that are looked at


def video_facts(metadata: Mapping[str, str], begun: datetime | None = None) -> dict[str, Any]:
    """The facts in the tags of a file, by their columns; those that are damaged are left out.

    `taken` is when it begins, in the camera's time or, as most write it, UTC. begun: by the movie header, which FFmpeg
    reads wrong before 1970.
    """
    tags = {name.lower(): value for name, value in metadata.items()}
    facts = {name: _first(tags, keys) for name, keys in _TEXTS.items()}
    facts |= {"camera": camera_name(_first(tags, _MAKE), _first(tags, _MODEL))[:100]}
    written = [begun.isoformat()] if begun else [tags.get(name, "") for name in ("creation_time", "date")]
    said = {"video": [tags.get(_APPLE_DATE, "")], "video (UTC)": written}
    date = best_date({source: [text for text in texts if text[:10] not in _NO_CLOCK] for source, texts in said.items()})
    place = None
    # Latitude and longitude of ISO 6709, in degrees, or degrees and minutes, or seconds as well
    if found := _ISO_6709.fullmatch(_first(tags, _PLACE)):
        north, latitude, east, longitude = found.groups()
        signs = -1 if north == "-" else 1, -1 if east == "-" else 1
        place = signs[0] * _degrees(latitude, 2), signs[1] * _degrees(longitude, 3)
    return {name: text for name, text in facts.items() if text} | date | best_position({"video": place})


def _first(tags: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """The first of these tags that says something, as one line."""
    return next(filter(None, (one_line(tags.get(key), _LONGEST) for key in keys)), "")


def _degrees(digits: str, whole: int) -> float:
    """`4851.5` is 48 degrees and 51.5 minutes."""
    before = len(digits.partition(".")[0])
    if before <= whole + 1:
        return float(digits)
    minutes = float(digits[whole:]) if before <= whole + 3 else int(digits[whole : whole + 2])
    seconds = float(digits[whole + 2 :]) if before > whole + 3 else 0.0
    return int(digits[:whole]) + minutes / 60 + seconds / 3600


# -- the header of MP4 and QuickTime files ------------------------------------------------------------------


def movie_header(file: BinaryIO) -> tuple[float | None, datetime | None]:
    """How long a film is, in seconds, and when it begins, in UTC, by the header of a file that stands at its start.

    None for what it does not say. Source: ISO/IEC 14496-12, 8.2.2.
    """
    moov = _box(file, b"moov", os.fstat(file.fileno()).st_size)
    if moov is None or _box(file, b"mvhd", moov) is None:
        return None, None
    head = file.read(32).ljust(32, b"\0")
    wide = head[:1] == b"\1"  # times of eight bytes
    rate, ticks = struct.unpack_from(">IQ" if wide else ">II", head, 20 if wide else 12)
    unknown = (0, (1 << 64 if wide else 1 << 32) - 1)
    (begun,) = struct.unpack_from(">Q" if wide else ">I", head, 4)
    seconds = ticks / rate if rate and ticks not in unknown else None
    return seconds, datetime(1904, 1, 1) + timedelta(seconds=begun) if 0 < begun < 1 << 34 else None


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
