"""When and where a photo was taken and by whom, by whatever says so, and which of it is believed.

A date and a position carry their source. The source ends in what its date is not good enough for: `(day)` and
`(minute)` have no time of the day or no seconds, `(UTC)` is another clock than the camera's. The day a file was changed
is not a date of these: it has a column of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

# Both tables from the most trusted source to the least
DATE_SOURCES = (
    "camera",  # EXIF DateTimeOriginal
    "digitised",  # EXIF DateTimeDigitized
    "XMP",
    "IPTC",
    "PNG",
    "video",  # Apple's tag
    "video (UTC)",  # the movie header, or the tag of another format
    "GPS (UTC)",
    "labels",  # a table of the user's
    "XMP sidecar",
    "Google Takeout (UTC)",
    "file name",
)
POSITION_SOURCES = ("GPS", "XMP", "video", "labels", "XMP sidecar", "Google Takeout")
# Times that tell two photos apart, to the second and by one clock
EXACT = ("camera", "digitised", "labels")
ROUGH = ("(day)", "(minute)")  # how the sources end of dates without a time to the second
_FIRST, _LAST = 1800, 2100  # years: 9999 and 1 stand for a date that nobody knows; a table may date a painting
DATE_SOURCE, POSITION_SOURCE, CHANGED, DOUBTFUL = "taken_from", "position_from", "date_changed", "gps_doubtful"
# Names of columns: of texts in the photo, and beside it
RATING = "embedded_rating"  # -1 for rejected, 0 to 5
EMBEDDED = ("embedded_title", "embedded_description", "embedded_keywords")
SIDECAR = ("sidecar_title", "sidecar_description", "sidecar_keywords")
COLUMNS = {name: "text" for name in (DATE_SOURCE, POSITION_SOURCE, CHANGED, DOUBTFUL)}

_DATE = r"([0-9]{4})\s?[:/.-]\s?([0-9]{1,2})\s?[:/.-]\s?([0-9]{1,2})(?![0-9])"
_TIME = r"[T ]\s?([0-9]{1,2}):\s?([0-9]{1,2})(?::\s?([0-9]{1,2})(?:[.,][0-9]*)?)?(?:\s?([AP])\.?M\b)?"
_WRITTEN = re.compile(f"{_DATE}(?:{_TIME})?", re.IGNORECASE)
_COMPACT = r"(?<![0-9])((?:19|20)[0-9]{2})([-_.]?)([01][0-9])\2([0-3][0-9])"
# 20010506_070809 and 2001-05-06 at 07.08.09, perhaps with milliseconds; a day alone has separators or WhatsApp's number
_NAMES = (
    re.compile(
        _COMPACT + r"(?:[-_ T]|,? at |--)([0-2][0-9]|[0-9](?=[.:]))([-_.:h]?)([0-5][0-9])\6([0-5][0-9])"
        r"(?:[0-9]{3})?(?![0-9])(?:\W?([AP])M(?=(?: ?\([0-9]+\)|-[0-9]+)?(?:\.\w+)?$))?",
        re.IGNORECASE,
    ),
    re.compile(_COMPACT + r"(?:(?<=[-_.][0-9]{2})(?![0-9])|(?=-WA[0-9]{4}))"),
)


def merged(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Labels of one picture from two places: those of the first count, and of keywords in sidecars all."""
    found = [str(one[SIDECAR[2]]) for one in (first, other) if one.get(SIDECAR[2])]
    words = dict.fromkeys("; ".join(found).split("; "))
    return {**other, **first} | ({SIDECAR[2]: "; ".join(words)} if len(found) == 2 else {})


def read_date(text: object, source: str) -> dict[str, Any] | None:
    """Columns of a date as cameras and programs spell it: EXIF's or ISO's, padded, with one-digit months, of 12 hours.

    `taken`, to the second on the clock of the source, and the source. Zones and parts of a second are left out: most
    photos name none.
    """
    line = " ".join(re.sub(r"[^!-~]", " ", text).split()) if isinstance(text, str) else ""
    if (parts := _WRITTEN.match(line)) is None:
        return None
    *day, hours, minutes, seconds, half = parts.groups()
    try:
        when = datetime(*map(int, day))  # type: ignore[arg-type]
        if not (1 if source == "labels" else _FIRST) <= when.year <= _LAST:
            return None
        if hours is None:
            return {"taken": when, DATE_SOURCE: f"{source} {ROUGH[0]}"}
        hour = int(hours) % 12 + 12 * (half in "Pp") if half and 1 <= int(hours) <= 12 else int(hours)
        after = timedelta(hours=hour, minutes=int(minutes), seconds=int(seconds or 0))
        # A day ends with 24:00:00, and a minute at times with second 60
        if after > timedelta(days=1) or int(minutes) > 59 or int(seconds or 0) > 60:
            return None
        return {"taken": when + after, DATE_SOURCE: source if seconds else f"{source} {ROUGH[1]}"}
    except (ValueError, OverflowError):
        return None


def best_date(by_source: Mapping[str, Iterable[object]]) -> dict[str, Any]:
    """Columns of the first date that can be read, by what each source says; none without one."""
    dates = (read_date(text, source) for source in DATE_SOURCES for text in by_source.get(source, ()))
    return next(filter(None, dates), {})


def date_in_name(name: str) -> str | None:
    """The date that phones, messengers and programs for screenshots put into the name of a file, in ISO's spelling."""
    for pattern in _NAMES:
        if found := pattern.search(name):
            year, _, month, day, *time = found.groups()
            half = f" {time[4]}M" if time and time[4] else ""
            return f"{year}-{month}-{day}" + (f"T{time[0]:0>2}:{time[2]}:{time[3]}{half}" if time else "")
    return None


def best_position(by_source: Mapping[str, tuple[Any, Any] | None], void: bool = False) -> dict[str, Any]:
    """Columns of the first position in degrees that is one, and of the first that is none with the reason.

    void: whether the receiver says that it had no fix; programs copy its position into XMP without saying so.
    """
    columns: dict[str, Any] = {}
    gps = None
    for source in POSITION_SOURCES:
        if (place := by_source.get(source)) is None or None in place:
            continue
        try:
            latitude, longitude = map(float, place)
        except (TypeError, ValueError, OverflowError):
            columns.setdefault(DOUBTFUL, f"{place[0]!r:.20}, {place[1]!r:.20} ({source}: no numbers)")
            continue
        if not (math.isfinite(latitude) and math.isfinite(longitude)):
            continue
        gps = (latitude, longitude) if source == "GPS" else gps
        is_void = void and (source == "GPS" or (gps is not None and math.dist(gps, (latitude, longitude)) < 1e-3))
        why = "no fix" if is_void else "0, 0" if latitude == longitude == 0 else "out of range"
        if not is_void and (latitude, longitude) != (0, 0) and abs(latitude) <= 90 and abs(longitude) <= 180:
            return columns | {"latitude": latitude, "longitude": longitude, POSITION_SOURCE: source}
        columns.setdefault(DOUBTFUL, f"{latitude:.9g}, {longitude:.9g} ({source}: {why})")
    return columns


# -- under which licence a photo may be handed on, and whom that asks to name ---------------------------------

# Columns in lower case without separators, the most telling first: Darwin Core, Flickr, iNaturalist, Commons.
LICENCES = ("licence", "license", "rights", "usageterms", "licenceurl", "licenseurl")
AUTHORS = (
    *("rightsholder", "copyrightholder", "author", "photographer", "artist", "creator", "ownername", "owner"),
    *("recordedby", "observer", "username", "userlogin", "uploader", "attribution", "credit"),
)
ADDRESSES = ("source", "sourceurl", "url", "pageurl", "page", "link", "references")


class Attribution(NamedTuple):
    """A photo's licence, its author and where it is from; None where the gallery does not say.

    Author and address of a photo without a licence are left out: no licence requires the name.
    """

    licence: str | None = None
    author: str | None = None
    url: str | None = None


def plain_name(column: str) -> str:
    """A column's name as it is compared: in lower case, without separators."""
    return re.sub(r"[^a-z0-9]", "", column.lower())


def attribution_of(facts: Mapping[str, Any]) -> Attribution:
    """What the columns of a gallery say of a photo, however they are spelled."""
    plain = {plain_name(name): str(value).strip() for name, value in facts.items() if value}
    licence, author, url = (
        next((plain[name] for name in names if plain.get(name)), None) for names in (LICENCES, AUTHORS, ADDRESSES)
    )
    return Attribution(licence, author, url) if licence else Attribution()
