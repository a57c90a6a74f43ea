"""One photo large: all that is known of it, why it was found, and its file for those who may have it."""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup

from eyespot.formats.albums import file_names
from eyespot.html import tidy
from eyespot.photos.pictures import BadPicture
from eyespot.photos.videos.addresses import frame_of
from eyespot.search.reasons import reasons
from eyespot.search.word_matches import label_words
from eyespot.types import EyespotError, Query
from eyespot.web._items import no_such_item
from eyespot.web._judging import own_of
from eyespot.web._pages import TEMPLATES
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import AppState, Served
from eyespot.web.annotate._session import session_of
from eyespot.web.found.calibrated import Own
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures.thumbnails import bytes_of

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])
# What a browser shows as a picture; nothing else is ever shown in it, and none of these can hold a script
SHOWN = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif")


@router.get("/originals/{id:path}", tags=["items"], response_class=Response)
def original(request: Request, house: Served, id: str) -> Response:
    """The file of an item as it was indexed, with all that it holds; for the owner, or whom the owner lets."""
    if person_of(request).role < house.settings.originals:
        raise Problem(403, f"original files are for the role {house.settings.originals.name.lower()}; ask the owner")
    snapshot = house.snapshot()
    row = snapshot.row_of(id)
    if row is None:
        raise no_such_item(id)
    place, data = _read(snapshot, id, row)
    kind = SHOWN.get(_format(data), "application/octet-stream")
    headers = {
        "Content-Disposition": _disposition("attachment" if kind == "application/octet-stream" else "inline", place),
        "Cache-Control": "private, no-cache",
        "Accept-Ranges": "none",  # the whole file is read to see that it is the one that was indexed
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(data, media_type=kind, headers=headers)


def _read(snapshot: Snapshot, id: str, row: int) -> tuple[str, bytes]:
    """Where a photo lies and its bytes; `Problem` where they are not those that were indexed."""
    for placed in snapshot.places(row):
        with suppress(OSError, BadPicture):
            return placed.place, bytes_of(id, placed)
    raise Problem(404, "the file is gone, or has changed since it was indexed; bring the gallery up to date")


def _format(data: bytes) -> str:
    from PIL import Image

    with suppress(Exception), Image.open(BytesIO(data)) as image:
        return image.format or ""
    return ""


def _disposition(how: str, place: str) -> str:
    (frame,) = file_names([place]) if frame_of(place) else [""]
    name = frame or PurePosixPath(place.replace("\\", "/")).name
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name) or "photo"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"


# -- what a page of one photo says ------------------------------------------------------------------------------


def about_photo(request: Request, house: AppState, given: SearchParams, item: dict[str, Any]) -> dict[str, Any]:
    """Why a photo is in a result, the words of the query, and the address of its file for whoever may have it."""
    may = person_of(request).role >= house.settings.originals
    return {
        "reasons": _reasons(house, given, item["id"], own_of(person_of(request))),
        "words": frozenset(label_words(given.q or "")),
        "original": f"/v1/originals/{quote(item['id'], safe='')}" if may else None,
        "in_browser": str(item.get("path") or "").lower().endswith(SUFFIXES),
    }


def flagged_as(request: Request, id: str) -> list[str]:
    """The flags on a photo in words; nothing for whoever may raise none."""
    if person_of(request).role < Role.ANNOTATOR:
        return []
    return [one.words for one in session_of(request).store.team.flags.of([id])]


def _reasons(house: AppState, given: SearchParams, id: str, own: Own | None) -> list[str]:
    """What put a photo into the result of a search, in sentences; nothing where nothing was searched for."""
    if not given.something:
        return []
    with suppress(EyespotError, Problem):
        frozen = house.search(given.plain, own)
        row = frozen.snapshot.row_of(id)
        if row is None:
            return []
        cosine = float(frozen.snapshot.vector(row) @ frozen.vector[0])
        look = f"it looks like the query: {cosine:.3f} of 1"
        notes = reasons(frozen.snapshot.collection, frozen.query or Query("q", ()), frozen.header, [row])[0]
        sentences = [look if note.code == "look" else str(note) for note in notes]
        return sentences or [look]
    return []


def marked(text: str, words: frozenset[str]) -> Markup:
    """A text in which the words of a query stand out."""
    parts = re.split(r"(\w+)", tidy(text))
    pieces = (Markup("<mark>{}</mark>").format(part) if words & {*label_words(part)} else part for part in parts)
    return Markup("").join(pieces)


TEMPLATES.filters["marked"] = marked
