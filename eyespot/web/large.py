"""One photo large: all that is known of it, why it was found, and its file for those who may have it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from markupsafe import Markup

from eyespot.formats.albums import file_names
from eyespot.html import tidy
from eyespot.photos.names import real_name
from eyespot.photos.videos.addresses import frame_of
from eyespot.search.by_words import reasons
from eyespot.search.word_matches import label_words
from eyespot.types import EyespotError, Query
from eyespot.web._items import existing_row
from eyespot.web._judging import judge_key_of
from eyespot.web._pages import TEMPLATES
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State
from eyespot.web.annotate._session import session_of
from eyespot.web.found.calibrated import JudgeKey
from eyespot.web.pictures import read_original

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])
# What a browser shows as a picture; nothing else is ever shown in it, and none of these can hold a script
SHOWN = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif")


@router.get("/originals/{id:path}", tags=["items"], response_class=Response)
def original(request: Request, state: State, id: str) -> Response:
    """The file of an item as it was indexed, with all that it holds; for the owner, or whom the owner lets."""
    if person_of(request).role < state.settings.originals:
        raise Problem(403, f"original files are for the role {state.settings.originals.name.lower()}; ask the owner")
    from PIL import Image

    snapshot = state.snapshots.current()
    row = existing_row(snapshot, id)
    place, data = read_original(id, snapshot.places(row))
    kind = "application/octet-stream"
    with suppress(Exception), Image.open(BytesIO(data)) as image:
        kind = SHOWN.get(image.format or "", kind)
    (frame,) = file_names([place]) if frame_of(place) else [""]
    name = frame or PurePosixPath(place.replace("\\", "/")).name
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name) or "photo"
    encoded = quote(name.encode("utf-8", "replace"), safe="")
    how = "inline" if kind in SHOWN.values() else "attachment"
    headers = {
        "Content-Disposition": f"{how}; filename=\"{plain}\"; filename*=UTF-8''{encoded}",
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    if os.path.isfile(path := real_name(place)):  # as it lies, so that a download that was cut goes on
        return FileResponse(path, media_type=kind, headers=headers)
    return Response(data, media_type=kind, headers=headers | {"Accept-Ranges": "none"})


# -- what a page of one photo says ------------------------------------------------------------------------------


def about_photo(request: Request, state: AppState, given: SearchParams, item: dict[str, Any]) -> dict[str, Any]:
    """Why a photo is in a result, the words of the query, its flags and its file for whoever may have them."""
    role = person_of(request).role
    flags = session_of(request).store.team.flags.of([item["id"]]) if role >= Role.ANNOTATOR else []
    return {
        "flagged": [one.words for one in flags],
        "reasons": _reasons(state, given, item["id"], judge_key_of(person_of(request))),
        "words": frozenset(label_words(given.q or "")),
        "original": f"/v1/originals/{quote(item['id'], safe='')}" if role >= state.settings.originals else None,
        "in_browser": str(item.get("path") or "").lower().endswith(SUFFIXES),
    }


def _reasons(state: AppState, given: SearchParams, id: str, judge_key: JudgeKey | None) -> list[str]:
    """What put a photo into the result of a search, in sentences; nothing where nothing was searched for."""
    if not given.something:
        return []
    with suppress(EyespotError, Problem):
        result = state.searches.run(given.plain, judge_key)
        if (row := result.snapshot.row_of(id)) is None:
            return []
        notes = reasons(result.snapshot.collection, result.query or Query("q", ()), result.header, [row])[0]
        return [str(note) for note in notes] or ["it looks like the query"]
    return []


def marked(text: str, words: frozenset[str]) -> Markup:
    """A text in which the words of a query stand out."""
    parts = re.split(r"(\w+)", tidy(text))
    pieces = (Markup("<mark>{}</mark>").format(part) if words & {*label_words(part)} else part for part in parts)
    return Markup("").join(pieces)


TEMPLATES.filters["marked"] = marked
