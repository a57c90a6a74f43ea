"""A list for whoever has its link: the photos, and what else the link shows, until when and behind which password."""

from __future__ import annotations

import hmac
import json
import time
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Path, Query, Request, Response
from starlette.responses import RedirectResponse

from eyespot.formats.exporting import tells_too_much
from eyespot.ledger.photo_lists import PhotoList
from eyespot.photos.videos.addresses import file_of
from eyespot.types import NothingFound
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._security import NOBODY, address_of
from eyespot.web._settings import digest_of
from eyespot.web._state import AppState, State
from eyespot.web.downloads import MOST, file_name, photos_response
from eyespot.web.found.summary import places_of, timeline_of
from eyespot.web.lists.api import USUAL, hashed, stretch_of

router = APIRouter(prefix="/shared", include_in_schema=False)
PAGE, COOKIE = 200, "eyespot_link"  # photos
MARKS = {"yes": "✓", "no": "✕", "doubt": "?"}
NO_FACT = {"id", "path", "thumbnail", "video", "title", "size", "mtime", "width", "height", "verdicts", "others"}
Size = Literal["320", "1600"]
First = Annotated[int, Query(ge=0, le=10**6)]


@router.get("/{token}")
def shared(request: Request, state: State, token: str, first: First = 0) -> Response:
    """The photos of the list that a link leads to, and what it shows of them; nothing else of the gallery."""
    one, terms, may = _entry(request, state, token)
    items, places, following = stretch_of(state, one.id, first, PAGE) if may else ([], {}, None)
    what: dict[str, Any] = {"items": items, "next": following, "places": places, "token": token, "terms": terms}
    lists, snapshot = state.ledger.readable.lists, state.snapshots.current()
    what |= {"words": [query.words for query in lists.queries(one.id)], "first": first}
    what["ends"] = terms["until"] and time.strftime("%Y-%m-%d", time.localtime(terms["until"]))
    # Of the whole list, whatever stretch of it is shown
    rows = snapshot.rows_by_id(lists.photos(one.id) if may and (terms["facts"] or terms["places"]) else [])
    every = snapshot.facts(rows[rows >= 0].tolist())
    what |= {"timeline": terms["facts"] and timeline_of(every), "map": terms["places"] and places_of(every)}
    what |= {"facts_of": lambda item: _facts(item, terms), "marks": MARKS}
    answer = page(request, "shared.html", one=one, **what) if may else _ask(request, token)
    answer.headers["X-Robots-Tag"] = "noindex"
    return answer


@router.post("/{token}/open")
def enter(request: Request, state: State, token: str, password: str = Form("", max_length=200)) -> Response:
    """The list, with a cookie for whoever knows the password; wrong ones are counted as wrong tokens are."""
    _, terms, _ = _entry(request, state, token)
    if terms["password"] and not hmac.compare_digest(hashed(password, token), terms["password"]):
        request.scope["access"].guesses.count(address_of(request.scope), digest_of(password), "passwords")
        return _ask(request, token, "This is not the password of the link.")
    answer = RedirectResponse(f"/shared/{token}", 303)
    how: dict[str, Any] = {"path": f"/shared/{token}", "httponly": True, "samesite": "lax"}
    answer.set_cookie(COOKIE, terms["password"], secure=request.url.scheme == "https", **how)
    return answer


@router.get("/{token}/{place}-{size}.jpg", response_class=Response)
def shared_photo(
    request: Request, state: State, token: str, place: Annotated[int, Path(ge=0, le=2**31)], size: Size
) -> Response:
    """A photo of that list by its place on it, without EXIF."""
    one, _, may = _entry(request, state, token)
    id = state.ledger.readable.lists.at(one.number, place) if may else None
    if id is None:
        raise Problem(404, "there is no such photo on this list")
    # A browser asks again, so that a link that was taken back shows nothing more
    headers = {"Cache-Control": "private, no-cache"}
    data = state.cache.thumbnails.jpeg(state.snapshots.current(), id, int(size))
    return Response(data, media_type="image/jpeg", headers=headers)


@router.get("/{token}/photos.zip", response_class=Response)
def shared_zip(request: Request, state: State, token: str) -> Response:
    """The photos in at most 1,600 pixels without EXIF, and a table of what the link shows of them."""
    one, terms, may = _entry(request, state, token)
    if not (terms["download"] and may):
        raise Problem(404, "this link has no download; ask whoever sent it")
    items, _, _ = stretch_of(state, one.id, 0, MOST)
    names = (PurePath(file_of(item["path"] or "")).name for item in items)
    photos = [{"id": item["id"], "path": name} | _facts(item, terms) for item, name in zip(items, names, strict=True)]
    how: dict[str, Any] = {"kind": "zip", "name": file_name(one.name), "heading": one.name, "head": request.headers}
    return photos_response(state, state.snapshots.current(), photos, NOBODY, **how)


def _entry(request: Request, state: AppState, token: str) -> tuple[PhotoList, dict[str, Any], bool]:
    """The list, the terms of its link, and whether the password was typed; `NothingFound` for a link that has ended."""
    lists = state.ledger.readable.lists
    one, text = lists.by_token(token), lists.terms(token)
    terms = {**USUAL.model_dump(), "until": None, **(json.loads(text) if text else {})}
    if terms["until"] is not None and time.time() > terms["until"]:
        raise NothingFound("this link has ended; ask whoever sent it for a new one")
    given = request.cookies.get(COOKIE, "").encode("utf-8", "replace")
    return one, terms, not terms["password"] or hmac.compare_digest(given, terms["password"].encode())


def _ask(request: Request, token: str, wrong: str = "") -> Response:
    return page(request, "shared_password.html", 401, token=token, wrong=wrong)


def _facts(item: dict[str, Any], terms: dict[str, Any]) -> dict[str, Any]:
    """What the link shows of a photo besides its title and verdicts."""
    known = {name: value for name, value in item.items() if value not in (None, "") and name not in NO_FACT}
    plain = {name: value for name, value in known.items() if not tells_too_much(name)} if terms["facts"] else {}
    return plain | {name: known[name] for name in ("latitude", "longitude") if name in known and terms["places"]}
