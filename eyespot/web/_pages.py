"""Pages: Jinja templates around what the gallery knows, every text escaped and free of what would turn it around."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from markupsafe import Markup
from starlette.responses import HTMLResponse

from eyespot.html import environment, tidy
from eyespot.web._problems import Problem
from eyespot.web._security import person_of
from eyespot.web._settings import Role

HERE = Path(__file__).parent
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
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
    content = {"person": person, "path": request.url.path, "links": links, **given}
    return HTMLResponse(TEMPLATES.get_template(template).render(content), status)


def breakable(text: str) -> Markup:
    """A long word such as a path, which a narrow column may break after its signs."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_.])(?=\w)", tidy(text)))


@cache
def _static(name: str) -> tuple[bytes, str]:
    """A file that pages need, and the digest that its address carries; read once."""
    data = (HERE / "static" / name).read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


def address_of_static(name: str) -> str:
    """Where a browser finds a file of `static/`; another content has another address and may be kept for ever."""
    return f"/static/{name}?v={_static(name)[1]}"


TEMPLATES = environment(HERE / "templates")
TEMPLATES.globals["static"], TEMPLATES.filters["breakable"] = address_of_static, breakable


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A style, a script or a licence."""
    kind = KINDS.get(Path(name).suffix)
    if kind is None or name not in {file.name for file in (HERE / "static").iterdir()}:
        raise Problem(404, "there is no such file")
    return Response(_static(name)[0], media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})
