"""What lies beside a photo: its RAW file or its moment of video, XMP sidecars, and the JSON files of Google Takeout.

The first two are one photo with it: of its name with another ending, and written within a minute of it. A video of more
than a few seconds is not.

A sidecar is `photo.jpg.xmp`, or `photo.xmp` for every photo of that name without one of its own. Takeout calls its
files `photo.jpg.json` or `photo.jpg.supplemental-metadata.json`, cuts these names after 46 characters, and puts the
number of `photo(1).jpg` behind them: `photo.jpg(1).json`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from eyespot.photos.kinds import RAW_SUFFIXES, ending_of
from eyespot.photos.names import NamedFiles, folded
from eyespot.photos.provenance import SIDECAR, read_date

RATING = "sidecar_rating"  # -1 for rejected, 0 to 5
BESIDE = "beside"  # the label of a photo that names the other file
SECONDS = 60.0
LONGEST = 6.0  # seconds of a moment; phones film some three
_PHOTOS = frozenset({".jpg", ".jpeg", ".heic", ".heif", ".hif"})
_MOMENTS = frozenset({".mov", ".mp4"})
_CUT = 46  # characters of a name of Takeout before `.json`
_TAKEOUT = ".supplemental-metadata"
# Copies that Google's editor made, in the languages of accounts
_EDITED = (
    *("-edited", "-bearbeitet", "-bewerkt", "-edytowane", "-editat", "-ha editado", "-modificato", "-modifié"),
    "-編集済み",
)
_ALIKE = 50  # photos whose names begin alike; among more no cut name is resolved
_SHOT = re.compile(r"(\.RAW-[0-9]{2}(\.[A-Z]+)*)?\.[^.]*$")  # of a Pixel: X.RAW-01.COVER.jpg, X.RAW-02.ORIGINAL.dng
_NUMBERED = re.compile(r"(.*?)(\([0-9]+\))?", re.DOTALL)


def pairs_in(entries: Sequence[os.DirEntry[str]]) -> dict[str, str]:
    """The files of a folder that belong to a photo in it, each with that photo, by their names."""
    others = [entry for entry in entries if ending_of(entry.name) in RAW_SUFFIXES | _MOMENTS]
    if not others:
        return {}
    from eyespot.photos.videos.metadata import movie_header

    photos = {_SHOT.sub("", entry.name): entry for entry in entries if ending_of(entry.name) in _PHOTOS}
    pairs = {}
    for entry in others:
        photo = photos.get(_SHOT.sub("", entry.name))
        with suppress(OSError):  # a link that leads nowhere
            if photo and entry.is_file() and abs(entry.stat().st_mtime - photo.stat().st_mtime) <= SECONDS:
                if ending_of(entry.name) in _MOMENTS:
                    with open(entry.path, "rb") as file:
                        if (movie_header(file)[0] or 0) > LONGEST:
                            continue
                pairs[entry.name] = photo.name
    return pairs


class _PhotoNames:
    """The photos of a folder, found by names that may be spelled otherwise."""

    def __init__(self, photos: Sequence[str], pairs: Mapping[str, str]) -> None:
        self.pairs, self.files = pairs, NamedFiles(photos)
        self.stems: dict[str, list[str]] = defaultdict(list)
        for name in photos:
            self.stems[folded(os.path.splitext(name)[0])].append(name)
        self.in_order = sorted(map(folded, photos))

    def called(self, name: str) -> list[str]:
        """The photo of this name, or else the only one whose name is alike."""
        found = [self.pairs[name]] if name in self.pairs else self.files.called(name)
        return found if len(found) == 1 else []

    def of_takeout(self, stem: str) -> list[str]:
        """The photo of a JSON file of this name without its ending, and its edited copy."""
        base, number = _NUMBERED.fullmatch(stem).groups(default="")  # type: ignore[union-attr]
        head, dot, tail = base.rpartition(".")
        bases = [base, head] if dot and _TAKEOUT.startswith(f".{tail}".lower()) else [base]
        numbered = [number.join(os.path.splitext(one)) if number else one for one in bases]
        found = next(filter(None, map(self.called, numbered)), [])
        if not found and len(stem) >= _CUT:
            start = folded(base)
            at = bisect_left(self.in_order, start)
            stems = ((name, os.path.splitext(name)[0]) for name in self.in_order[at : at + _ALIKE])
            begin_so = [(name, of) for name, of in stems if name.startswith(start) and not of.endswith(_EDITED)]
            fit = [name for name, of in begin_so if _NUMBERED.fullmatch(of)[2] == (number or None)]  # type: ignore[index]
            found = self.called(fit[0]) if len(fit) == 1 and len(begin_so) < _ALIKE else []
        copies = (edited.join(os.path.splitext(one)) for one in found for edited in _EDITED)
        return found + [copy for name in copies for copy in self.called(name)]


def sidecars_in(names: Collection[str], photos: Sequence[str], pairs: Mapping[str, str]) -> dict[str, list[str]]:
    """The names in a folder that may be sidecars, each with its photos.

    pairs: files that belong to a photo beside them, and that photo, which has their sidecars too. A sidecar with a
    photo's exact name comes before all others of its kind.
    """
    sidecars = [(*os.path.splitext(name), name) for name in names if ending_of(name) in (".xmp", ".json")]
    if not sidecars or not photos:
        return {}
    known, names, whole, found = _PhotoNames(photos, pairs), set(names), set(map(folded, names)), {}
    for stem, ending, name in sidecars:
        if ending.lower() == ".json":
            found[name] = known.of_takeout(stem)
        else:
            called = [one for one in known.called(stem) if one == stem or f"{one}.xmp" not in names]
            others = [] if known.called(stem) else known.stems.get(folded(stem), [])
            found[name] = called + [one for one in others if f"{folded(one)}.xmp" not in whole]
    return {name: of for name, of in found.items() if of}


def with_sidecars(folder: str) -> set[str]:
    """The names of the photos in a folder that have a sidecar there; none if the folder cannot be read."""
    with suppress(OSError):
        names = os.listdir(folder)
        photos = [name for name in names if ending_of(name) not in (".xmp", ".json")]
        return {photo for of in sidecars_in(names, photos, {}).values() for photo in of}
    return set()


def is_near(sidecar: str, photo: str) -> bool:
    """Whether a sidecar has its photo only by a name that was cut or is spelled otherwise."""
    stem = os.path.splitext(photo)[0]
    plain = next((stem.removesuffix(edited) for edited in _EDITED if stem.endswith(edited)), stem)
    return not sidecar.startswith(_NUMBERED.fullmatch(plain)[1])  # type: ignore[index]


def sidecar_facts(place: str) -> dict[str, Any] | None:
    """What a sidecar says, as labels; None for a JSON file of something else.

    Date and position stand as `xmp:taken` and so on, until it is decided which source is believed. Raises OSError for a
    file that cannot be read, and `ValueError` for what is not a sidecar.
    """
    # With all that reads what files say of themselves, which most walks do not need
    from eyespot.photos.embedded_facts import (
        DATES,
        MOST_BYTES,
        degrees_in,
        one_line_each,
        rating_in,
        read_xmp,
        xmp_texts,
    )

    if not stat.S_ISREG(os.stat(place).st_mode):
        raise OSError("not a regular file")
    with open(place, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if ending_of(place) == ".xmp":
        xmp = read_xmp(data)
        texts = one_line_each(*xmp_texts(xmp))
        dates = (text for name in DATES for text in xmp.get(name, ()) if read_date(text, ""))
        latitude, longitude = degrees_in(xmp) or (None, None)
        facts = dict(zip(SIDECAR, texts, strict=True)) | {"xmp:latitude": latitude, "xmp:longitude": longitude}
        facts |= {"xmp:taken": next(dates, "").strip()[:40], RATING: rating_in(xmp)}
        return {name: value for name, value in facts.items() if value not in (None, "")}
    try:
        value = json.loads(data[:MOST_BYTES])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("photoTakenTime", value.get("geoData")), dict):
        return None
    return _of_takeout(value)


def _of_takeout(value: Mapping[str, Any]) -> dict[str, Any]:
    from eyespot.photos.embedded_facts import one_line_each

    facts: dict[str, Any] = {}
    description, people = value.get("description"), value.get("people")
    named = [one.get("name") for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    texts = ([text for text in some if isinstance(text, str)] for some in ((), [description], named))
    facts |= zip(SIDECAR, one_line_each(*texts), strict=True)
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        stamp = value["photoTakenTime"]["timestamp"]
        seconds = 0 if isinstance(stamp, bool) else int(stamp)
        if seconds:  # 0 is what it writes where nothing is known
            facts["takeout:taken"] = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    for name in ("geoData", "geoDataExif"):
        place = value.get(name)
        degrees = [place.get(key) if isinstance(place, dict) else None for key in ("latitude", "longitude")]
        # Without a position Takeout writes 0, 0
        if any(degrees) and all(
            isinstance(one, float | int) and one is not True and abs(one) <= 360 for one in degrees
        ):
            facts |= {"takeout:latitude": degrees[0], "takeout:longitude": degrees[1]}
            break
    return {name: value for name, value in facts.items() if value is not None}
