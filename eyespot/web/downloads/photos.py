"""Photos to take along: a zip of originals or of pictures of 1,600 pixels, and a contact sheet in one HTML file.

Both are sent while they are written: memory holds one photo, and nobody waits for all before the first byte. What
cannot be read, or has changed since it was indexed, is listed with the reason in `left_out.txt` inside a zip.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from fastapi import Response
from starlette.responses import StreamingResponse

from eyespot.formats.albums import file_names
from eyespot.photos.pictures import BadPicture
from eyespot.search.contact_sheet import Tile, html_pieces
from eyespot.storage.tables import csv_bytes
from eyespot.types import UsageError
from eyespot.web._items import title_of
from eyespot.web._problems import Problem
from eyespot.web._settings import User
from eyespot.web._state import AppState
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures.thumbnails import bytes_of

Kind = Literal["zip", "originals", "sheet"]
SIDE, SHEET_SIDE = 1600, 320  # pixels of the longer side
MOST, MOST_ON_SHEET = 10_000, 1_000  # photos
LEFT_OUT, TABLE = "left_out.txt", "photos.csv"


class Bundle(NamedTuple):
    """Photos to take along: what they are called together, and what is known of each, without what nobody asked for."""

    name: str  # of the file, safe
    heading: str
    snapshot: Snapshot
    items: Sequence[Mapping[str, Any]]


def formats_for(house: AppState, person: User, formats: Mapping[str, str]) -> dict[str, str]:
    """The formats that somebody may take photos along in, with their names."""
    may = person.role >= house.settings.originals
    return {format: name for format, name in formats.items() if may or format != "originals"}


def photos_response(house: AppState, bundle: Bundle, kind: Kind, person: User) -> Response:
    """The photos as a file. `Problem` for originals where somebody may not have them, `UsageError` for too many."""
    if kind == "originals" and person.role < (needed := house.settings.originals):
        raise Problem(403, f"original files are for the role {needed.name.lower()}; take the pictures of 1,600 pixels")
    most = MOST_ON_SHEET if kind == "sheet" else MOST
    if len(bundle.items) > most:
        raise UsageError(f"this holds at most {most:,} photos at a time; ask for fewer, or for those with a yes")
    if kind == "sheet":
        headers = {"Content-Disposition": f'attachment; filename="{bundle.name}.html"'}
        pages = html_pieces(bundle.heading, _tiles(house, bundle))
        sheet = (piece.encode("utf-8", "backslashreplace") for piece in pages)
        return StreamingResponse(sheet, media_type="text/html; charset=utf-8", headers=headers)
    headers = {"Content-Disposition": f'attachment; filename="{bundle.name}.zip"'}
    pieces = zipped(_files(house, bundle, kind == "originals"))
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)


# -- zip ----------------------------------------------------------------------------------------------------------


class _Sink:
    """Where a zip is written piece by piece; it cannot go back, and so it never holds more than the last piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def zipped(files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """A zip of files by their names, one file at a time."""
    sink, now = _Sink(), time.localtime()[:6]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name, now), data)
            yield sink.take()
    yield sink.take()


def _files(house: AppState, bundle: Bundle, originals: bool) -> Iterator[tuple[str, bytes]]:
    """The pictures under names of their own, a table of them, and what is left out and why."""
    paths = [str(item["path"] or item["id"]) for item in bundle.items]
    rows, failures = [], []
    for item, name in zip(bundle.items, file_names(paths, "" if originals else ".jpg"), strict=True):
        try:
            data = _original(bundle.snapshot, item["id"]) if originals else _small(house, bundle.snapshot, item["id"])
        except (OSError, BadPicture, Problem) as error:
            failures.append(f"{item['path'] or item['id']}: {error}\n")
            continue
        rows.append({"file": name, **{key: value for key, value in item.items() if key not in ("file", "thumbnail")}})
        yield f"photos/{name}", data
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["file"]
    yield TABLE, csv_bytes(columns, rows)
    if failures:
        yield LEFT_OUT, "".join(failures).encode("utf-8", "backslashreplace")


def _small(house: AppState, snapshot: Snapshot, id: str) -> bytes:
    return house.thumbnails.jpeg(snapshot, id, SIDE)


def _original(snapshot: Snapshot, id: str) -> bytes:
    """The bytes that were indexed; OSError if they are gone or others by now."""
    row = snapshot.row_of(id)
    for placed in snapshot.places(row) if row is not None else []:
        with suppress(OSError, BadPicture):
            return bytes_of(id, placed)
    raise OSError("the picture is gone, or has changed since it was indexed")


# -- contact sheet --------------------------------------------------------------------------------------------------


def _tiles(house: AppState, bundle: Bundle) -> Iterator[Tile]:
    """The photos of a sheet, each made small when its turn comes."""
    for number, item in enumerate(bundle.items, 1):
        picture = None
        with suppress(Problem, OSError):
            picture = house.thumbnails.jpeg(bundle.snapshot, item["id"], SHEET_SIDE)
        caption = str(item.get("verdict") or item.get("verdicts") or "")
        yield Tile(picture, int(item.get("rank", number)), item.get("score"), title_of(item), caption)
