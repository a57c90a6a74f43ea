"""What a video says about itself: when, where and with which camera it was taken, and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

_TAKEN = ("com.apple.quicktime.creationdate", "creation_time", "date")
_PLACE = ("com.apple.quicktime.location.iso6709", "location", "location-eng")
_MAKE = ("com.apple.quicktime.make", "make", "com.android.manufacturer")
_MODEL = ("com.apple.quicktime.model", "model", "com.android.model")
_TEXTS = {
    "embedded_title": ("title", "com.apple.quicktime.title"),
    "embedded_description": ("description", "comment", "com.apple.quicktime.description"),
    "embedded_keywords": ("keywords", "com.apple.quicktime.keywords"),
}
_ISO_6709 = re.compile(r"([+-])([0-9]{2,6}(?:\.[0-9]+)?)([+-])([0-9]{3,7}(?:\.[0-9]+)?)(?:[+-][0-9.]+)?(?:CRS.*)?/?")
_LONGEST, _FIRST_YEAR = 2000, 1971  # characters of a text; cameras without a clock write 1904 or 1970


class VideoFacts(NamedTuple):
    """What the metadata of a video says; `taken` is when it begins, in the camera's time or, as most write it, UTC."""

    taken: datetime | None = None
    latitude: float | None = None
    longitude: float | None = None
    camera: str | None = None
    embedded_title: str | None = None
    embedded_description: str | None = None
    embedded_keywords: str | None = None


def video_facts(metadata: Mapping[str, str]) -> VideoFacts:
    """The facts in the tags of a file; those that are damaged are left out."""
    tags = {name.lower(): value for name, value in metadata.items()}
    latitude, longitude = _position(_first(tags, _PLACE))
    make, model = _first(tags, _MAKE), _first(tags, _MODEL)
    camera = model if model.lower().startswith(make.lower()) else f"{make} {model}"
    texts = {name: _first(tags, keys) or None for name, keys in _TEXTS.items()}
    taken = next((when for key in _TAKEN if (when := _time(tags.get(key, "")))), None)
    return VideoFacts(taken, latitude, longitude, camera.strip()[:100] or None, **texts)


def _first(tags: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """The first of these tags that says something, as one line."""
    lines = (" ".join(re.sub(r"[^ -~\u00a0-\ud7ff\ue000-\U0010ffff]", " ", tags.get(key, "")).split()) for key in keys)
    return next(filter(None, lines), "")[:_LONGEST]


def _time(text: str) -> datetime | None:
    """A time as it stands there, without its zone: photos have none either."""
    with suppress(ValueError):
        when = datetime.fromisoformat(text.strip()).replace(tzinfo=None, microsecond=0)
        return when if when.year >= _FIRST_YEAR else None
    return None


def _position(text: str) -> tuple[float, float] | tuple[None, None]:
    """Latitude and longitude of ISO 6709, in degrees, or degrees and minutes, or seconds as well."""
    found = _ISO_6709.fullmatch(text)
    if found is None:
        return None, None
    north, latitude, east, longitude = found.groups()
    where = _degrees(latitude, 2) * (-1 if north == "-" else 1), _degrees(longitude, 3) * (-1 if east == "-" else 1)
    return where if abs(where[0]) <= 90 and abs(where[1]) <= 180 else (None, None)


def _degrees(digits: str, whole: int) -> float:
    """`4851.5` is 48 degrees and 51.5 minutes."""
    before = len(digits.partition(".")[0])
    if before <= whole + 1:
        return float(digits)
    minutes = float(digits[whole:]) if before <= whole + 3 else int(digits[whole : whole + 2])
    seconds = float(digits[whole + 2 :]) if before > whole + 3 else 0.0
    return int(digits[:whole]) + minutes / 60 + seconds / 3600
