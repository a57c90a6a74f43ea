"""Pages: Jinja templates around what the gallery knows, every text escaped and free of what would turn it around."""

from __future__ import annotations

import hashlib
import re
from functools import cache, partial
from http.client import responses
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.routing import Match

from eyespot.html import WORLD, environment, tidy
from eyespot.storage.digests import text_digest
from eyespot.types import EyespotError, NothingFound, UsageError
from eyespot.web._items import known_words, ratio_class, thumbnail_address, title_of
from eyespot.web._problems import NO_ROOM, Problem, faults_text, is_full, problem_json, wants_page
from eyespot.web._security import person_of
from eyespot.web._settings import Role

HERE = Path(__file__).parent
KINDS = {".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
KINDS |= {".svg": "image/svg+xml", ".txt": "text/plain"}
router = APIRouter(include_in_schema=False)


class Link(NamedTuple):
    """A page of the bar on top, for whoever has the role."""

    label: str
    href: str
    role: Role = Role.READER


def page(request: Request, template: str, status: int = 200, **given: Any) -> HTMLResponse:
    """A template as an answer; it also knows `person`, `path` and the `links` of the bar."""
    person = person_of(request)
    links = [link for link in request.app.state.links if person.role >= link.role]
    gallery = text_digest(str(request.app.state.eyespot.settings.gallery.absolute()))  # what a browser keeps is of one
    content = {"person": person, "path": request.url.path, "links": links, "gallery": gallery, **given}
    return HTMLResponse(TEMPLATES.get_template(template).render(content), status)


def breakable(text: str) -> Markup:
    """A long word such as a path, which a narrow column may break after its signs."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_.])(?=\w)", tidy(text)))


@cache
def _static(name: str) -> tuple[bytes, str]:
    """A file that pages need, and the digest that its address carries; read once."""
    data = (WORLD if name == WORLD.name else HERE / "static" / name).read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


TEMPLATES = environment(HERE / "templates")
# Where a browser finds a file of `static/`: another content has another address and may be kept for ever
TEMPLATES.globals["static"] = lambda name: f"/static/{name}?v={_static(name)[1]}"
TEMPLATES.globals |= {"known_words": known_words, "quoted": partial(quote, safe=""), "ratio_class": ratio_class}
TEMPLATES.globals |= {"thumbnail": thumbnail_address, "title_of": title_of}
TEMPLATES.filters["breakable"] = breakable


@router.get("/static/{name}")
def static(name: str, v: str = "") -> Response:
    """A style, a script or a licence; `v` changes with what it holds."""
    kind = KINDS.get(Path(name).suffix)
    if kind is None or name not in {WORLD.name, *(file.name for file in (HERE / "static").iterdir())}:
        raise Problem(404, "there is no such file")
    return Response(_static(name)[0], media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


STUMBLED = Problem(500, "eyespot stumbled; what happened stands in the server's own output")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def install(app: FastAPI) -> None:
    """Let every error of the application be told in one of the two ways."""
    for kind in (Problem, EyespotError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, answer_of)


def answer_of(request: Request, error: Exception) -> Response:
    """The error for whoever asked."""
    problem = problem_of(request, error)
    if not wants_page(request.headers, request.url.path):
        return problem_json(problem)
    name = "problem_inside.html" if request.headers.get("hx-request") else "problem.html"
    answer = page(request, name, problem.status, heading=responses.get(problem.status, "Error"), problem=problem)
    answer.headers.update(problem.headers)
    return answer


def problem_of(request: Request, error: Exception) -> Problem:
    """What went wrong, with its status."""
    if isinstance(error, Problem):
        return error
    if is_full(error):
        return NO_ROOM
    if isinstance(error, EyespotError):
        status = 404 if isinstance(error, NothingFound) else 422 if isinstance(error, UsageError) else 500
        # Where on the disk the gallery lies is for its owner alone
        above = "" if person_of(request).role >= Role.OWNER else f"{request.app.state.eyespot.settings.gallery.parent}/"
        return Problem(status, str(error).replace(above, "") if above else str(error))
    if isinstance(error, RequestValidationError):
        return Problem(422, faults_text([{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]))
    if not isinstance(error, HTTPException):
        return STUMBLED
    if error.status_code == 405:
        # All that the address answers to; the framework names those of the first route that it finds
        scopes = {method: {**request.scope, "method": method} for method in METHODS}
        routes = request.app.routes
        methods = [m for m, scope in scopes.items() if any(route.matches(scope)[0] is Match.FULL for route in routes)]
        return Problem(405, "this address does not answer to that method", {"Allow": ", ".join(methods)})
    detail = "there is nothing at this address" if error.status_code == 404 else str(error.detail)
    return Problem(error.status_code, detail, error.headers)
