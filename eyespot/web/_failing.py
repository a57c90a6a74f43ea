"""Every error of the application as an answer: a page for people, a problem for programs."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from eyespot.types import EyespotError, NothingFound, UsageError
from eyespot.web._pages import page
from eyespot.web._problems import Problem, phrase, problem_json, wants_page


def install(app: FastAPI) -> None:
    """Let every error of the application be told in one of the two ways."""
    app.add_exception_handler(Problem, lambda request, error: _answer(request, error))
    app.add_exception_handler(EyespotError, lambda request, error: _answer(request, _of_eyespot(error)))
    app.add_exception_handler(HTTPException, lambda request, error: _answer(request, _of_http(request, error)))
    app.add_exception_handler(RequestValidationError, lambda request, error: _answer(request, _of_input(error)))
    app.add_exception_handler(Exception, lambda request, _: _answer(request, STUMBLED))


STUMBLED = Problem(500, "eyespot stumbled; what happened stands in the server's own output")


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _answer(request: Request, problem: Problem) -> Response:
    if not wants_page(request.headers, request.url.path):
        return problem_json(problem)
    name = "problem_inside.html" if request.headers.get("hx-request") else "problem.html"
    answer = page(request, name, problem.status, heading=phrase(problem.status), detail=problem.detail)
    answer.headers.update(problem.headers)
    return answer


def _of_eyespot(error: EyespotError) -> Problem:
    status = 404 if isinstance(error, NothingFound) else 422 if isinstance(error, UsageError) else 500
    return Problem(status, str(error))


def _of_http(request: Request, error: HTTPException) -> Problem:
    if error.status_code == 405:
        # All that the address answers to; the framework names those of the first route that it finds
        methods = ", ".join(method for method in METHODS if _answers(request, method))
        return Problem(405, "this address does not answer to that method", {"Allow": methods})
    what = {404: "there is nothing at this address"}
    return Problem(error.status_code, what.get(error.status_code, str(error.detail)), error.headers)


def _answers(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


def _of_input(error: RequestValidationError) -> Problem:
    """What was given is not told back: it may be long, secret, or no text at all."""
    wrong = ["{}: {}".format(".".join(map(str, one["loc"][1:])) or "body", one["msg"]) for one in error.errors()[:5]]
    return Problem(422, "; ".join(wrong).encode("utf-8", "replace").decode())
