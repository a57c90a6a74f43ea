"""The CSV of Timelapse as facts for a gallery: each field of the template is a column.

`taken` is the time of the photo, `deployment` its folder if no field has that name. Paths are Windows', below the
folder in which the CSV lies or the root folder that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from eyespot.formats.imports.packages import ExportPackage
from eyespot.formats.imports.photo_facts import PhotoFacts
from eyespot.types import UsageError

_PLACES = ("file", "relativepath", "rootfolder", "folder")
_TIMES = ("datetime", "date", "time", "utcoffset")
_DAYS = ("%d-%b-%Y", "%Y-%m-%d")  # 03/04/2024 of a spreadsheet may be April or March, and is not read


def read(place: Path) -> Iterator[PhotoFacts]:
    """Every photo of the CSV; `UsageError` if it is not Timelapse's."""
    if not place.is_file():
        raise UsageError(f"there is no file {place}; name the CSV that Timelapse exported")
    package = ExportPackage(place.parent)
    for line, row in package.rows(place.name):
        if isinstance(row, str):
            yield PhotoFacts(f"line {line}", {}, row)
        elif "file" not in row:
            yield PhotoFacts(f"line {line}", {}, "has no File")
        else:
            folder = row.get("relativepath", "").replace("\\", "/").strip("/")
            inside = f"{folder}/{row['file']}" if folder else row["file"]
            root = (row.get("rootfolder") or row.get("folder") or "").replace("\\", "/").strip("/")
            yield PhotoFacts(inside, _facts(row, folder), elsewhere=(f"{root}/{inside}",) if root else ())


def _facts(row: Mapping[str, str], folder: str) -> dict[str, Any]:
    own = {name: value for name, value in row.items() if name and name not in (*_PLACES, *_TIMES)}
    return {"deployment": folder or None, **own, "taken": _time(row)}


def _time(row: Mapping[str, str]) -> str | None:
    """The camera's time: older versions write it as UTC with the hours to add beside it."""
    text = row.get("datetime", "")
    with suppress(ValueError, OverflowError):  # hours beyond the years 1 to 9999
        time = datetime.fromisoformat(text)
        hours = float(row.get("utcoffset", 0)) if text.endswith("Z") else 0.0
        return (time.replace(tzinfo=None) + timedelta(hours=hours)).isoformat(sep=" ", timespec="seconds")
    for day in _DAYS:
        for separated in (text, f"{row.get('date', '')} {row.get('time', '')}"):
            with suppress(ValueError):
                return datetime.strptime(separated, f"{day} %H:%M:%S").isoformat(sep=" ")
    return None
