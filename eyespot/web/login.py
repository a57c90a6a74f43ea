"""Login: a form that puts a token into a cookie which scripts cannot read; and the name of who has none."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._security import COOKIE, NAME_COOKIE, AuthMiddleware, address_of, clean_name

router = APIRouter(include_in_schema=False)
KEPT, YEAR = 12 * 3600, 365 * 24 * 3600  # seconds


@router.get("/login")
def login(request: Request, next: str = "/") -> Response:
    """Where a token is typed; one behind a `#` in the address is taken from there and never reaches a log."""
    return page(request, "login.html", next=_inside(next), wrong="")


@router.post("/login")
def log_in(request: Request, token: str = Form(max_length=500), next: str = Form("/", max_length=5000)) -> Response:
    """To the page that was asked for, with the cookie; or the form again, with what was wrong."""
    access: AuthMiddleware = request.scope["access"]
    try:
        access.known(token.strip(), address_of(request.scope))
    except Problem as problem:
        return page(request, "login.html", problem.status, next=_inside(next), wrong=problem.detail)
    answer = RedirectResponse(_inside(next), 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token.strip(), max_age=KEPT, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout")
def log_out() -> Response:
    """Back to the form, without the cookie."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


@router.post("/name")
def set_name(name: str = Form(max_length=200), next: str = Form("/", max_length=5000)) -> Response:
    """Back to where one was, with a name under which judgements are kept while no token says who it is."""
    answer = RedirectResponse(_inside(next), 303)
    answer.set_cookie(NAME_COOKIE, quote(clean_name(name)), max_age=YEAR, httponly=True, samesite="strict")
    return answer


def _inside(next: str) -> str:
    """The page to go on to, if it is one of this server."""
    try:
        parts = urlsplit(next)
    except ValueError:
        return "/"
    plain = next.startswith("/") and not next.startswith("//") and "\\" not in next and next.isprintable()
    return next if plain and not (parts.scheme or parts.netloc) else "/"
