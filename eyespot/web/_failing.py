"""Every error of the application as an answer: a page for people, a problem for programs."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from eyespot.types import EyespotError, NothingFound, UsageError
from eyespot.web._pages import page
from eyespot.web._problems import Problem, phrase, problem_json, wants_page

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
    answer = page(request, name, problem.status, heading=phrase(problem.status), detail=problem.detail)
    answer.headers.update(problem.headers)
    return answer


def problem_of(request: Request, error: Exception) -> Problem:
    """What went wrong, with its status."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, EyespotError):
        status = 404 if isinstance(error, NothingFound) else 422 if isinstance(error, UsageError) else 500
        return Problem(status, str(error))
    if isinstance(error, RequestValidationError):
        # What was given is not told back: it may be long, secret, or no text at all.
        faults = [(".".join(map(str, fault["loc"][1:])), fault["msg"]) for fault in error.errors()[:5]]
        wrong = "; ".join(f"{place or 'body'}: {message}" for place, message in faults)
        return Problem(422, wrong.encode("utf-8", "replace").decode())
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
