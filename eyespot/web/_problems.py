"""What went wrong, told to programs as RFC 9457 has it (`application/problem+json`)."""

from __future__ import annotations

import json
from http.client import responses
from typing import TYPE_CHECKING, Any

from fastapi import Response

from eyespot.storage.atomic import FULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEDIA = "application/problem+json"
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What is wrong with the request, in a sentence", "content": {MEDIA: {}}},
    "5XX": {"description": "What is wrong with the server, in a sentence", "content": {MEDIA: {}}},
}


def leads_to(status: int, path: str, **parameters: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a creation: where the created thing is found, by which fields of the answer."""
    reference = f"#/paths/{path.replace('~', '~0').replace('/', '~1')}/get"
    values = {name: f"$response.body#/{field}" for name, field in parameters.items()}
    return {
        status: {
            "description": "With what leads on",
            "links": {"created": {"operationRef": reference, "parameters": values}},
        }
    }


class Problem(Exception):
    """An answer that is no: its status, in one sentence why and what to do, and an address that works instead."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, instead: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.instead = status, detail, dict(headers or {}), instead


NO_ROOM = Problem(507, "the server's disk is full; make room on it and send this again: what was stored before is safe")


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is the error or its cause."""
    # SQLite calls the last a "disk I/O error"
    names = getattr(error, "errno", None), getattr(error, "sqlite_errorname", "")
    full = names[0] in FULL or names[1] in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
    return full or (error is not None and is_full(error.__context__))


def faults_text(faults: Iterable[Any]) -> str:
    """The first five of pydantic's faults, without what was given: that may be long, secret, or no text at all."""
    long = {"string_too_long": "longer than {max_length:,} characters; shorten it"}
    placed = [(".".join(map(str, fault["loc"])) or "body", fault) for fault in [*faults][:5]]
    texts = [f"{place}: {long.get(one['type'], '{msg}').format(**one | one.get('ctx', {}))}" for place, one in placed]
    return "; ".join(texts).encode("utf-8", "replace").decode()


def problem_json(problem: Problem) -> Response:
    """The problem for a program."""
    title = responses.get(problem.status, "Error")
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    body["message"] = problem.detail  # the one member that clients of OpenAI's show
    return Response(json.dumps(body).encode(), problem.status, problem.headers, MEDIA)


def wants_page(headers: Mapping[str, str], path: str) -> bool:
    """Whether a person in a browser asks, and not a program; of the API, where a form or a link brings them."""
    program = path.startswith("/v1/") and headers.get("sec-fetch-mode") != "navigate"
    return not program and "text/html" in headers.get("accept", "")
