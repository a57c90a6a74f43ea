"""What went wrong, told as RFC 9457 has it (`application/problem+json`) to programs and as a page to people."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from eyespot.types import EyespotError, NothingFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA = "application/problem+json"
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What is wrong with the request, in a sentence", "content": {MEDIA: {}}},
    "5XX": {"description": "What is wrong with the server, in a sentence", "content": {MEDIA: {}}},
}


class Problem(Exception):
    """An answer that is no: its status, and in one sentence why and what to do."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def told(problem: Problem) -> Response:
    """The problem for a program."""
    told = {"type": "about:blank", "title": phrase(problem.status), "status": problem.status, "detail": problem.detail}
    return Response(json.dumps(told).encode(), problem.status, problem.headers, MEDIA)


def phrase(status: int) -> str:
    """The name of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def wants_page(headers: Mapping[str, str], path: str) -> bool:
    """Whether a person in a browser asks, and not a program."""
    return not path.startswith("/v1/") and "text/html" in headers.get("accept", "")


def install(app: FastAPI) -> None:
    """Let every error of the application be told in one of the two ways."""
    app.add_exception_handler(Problem, lambda request, error: _answer(request, error))
    app.add_exception_handler(EyespotError, lambda request, error: _answer(request, _of_eyespot(error)))
    app.add_exception_handler(HTTPException, lambda request, error: _answer(request, _of_http(error)))
    app.add_exception_handler(RequestValidationError, lambda request, error: _answer(request, _of_input(error)))
    app.add_exception_handler(Exception, lambda request, _: _answer(request, STUMBLED))


STUMBLED = Problem(500, "eyespot stumbled; what happened stands in the server's own output")


def _answer(request: Request, problem: Problem) -> Response:
    if not wants_page(request.headers, request.url.path):
        return told(problem)
    from eyespot.web._pages import page

    name = "problem_inside.html" if request.headers.get("hx-request") else "problem.html"
    answer = page(request, name, problem.status, heading=phrase(problem.status), detail=problem.detail)
    answer.headers.update(problem.headers)
    return answer


def _of_eyespot(error: EyespotError) -> Problem:
    status = 404 if isinstance(error, NothingFound) else 422 if isinstance(error, UsageError) else 500
    return Problem(status, str(error))


def _of_http(error: HTTPException) -> Problem:
    what = {404: "there is nothing at this address", 405: "this address does not answer to that method"}
    return Problem(error.status_code, what.get(error.status_code, str(error.detail)), error.headers)


def _of_input(error: RequestValidationError) -> Problem:
    """What was given is not told back: it may be long, secret, or no text at all."""
    wrong = ["{}: {}".format(".".join(map(str, one["loc"][1:])) or "body", one["msg"]) for one in error.errors()[:5]]
    return Problem(422, "; ".join(wrong).encode("utf-8", "replace").decode())
