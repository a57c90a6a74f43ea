"""What a server does not accept in a request, and the request without it: learned once, kept for the rest of the run.

Servers of one protocol differ in what they take: twenty alternatives of a token or five, max_tokens or its newer name,
a temperature or none. They say so with status 400 and a sentence that names the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]
Amendment: TypeAlias = Callable[[Body], Body]

FEWER = 5  # alternatives of a token where twenty are too many


def fewer_alternatives(body: Body) -> Body:
    """Five alternatives of a token where more are asked for."""
    return {**body, "top_logprobs": FEWER} if body.get("top_logprobs", 0) > FEWER else body


def _without(*names: str) -> Amendment:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def newer_name(body: Body) -> Body:
    """The limit of tokens under the name that reasoning models want."""
    return {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in body.items()}


# (what the complaint names, what mends the request), the gentlest first
AMENDMENTS: tuple[tuple[str, Amendment], ...] = (
    ("logprob_token_ids", _without("logprob_token_ids")),
    ("logprobs", fewer_alternatives),
    ("logprobs", _without("logprobs", "top_logprobs", "logprob_token_ids")),
    ("max_tokens", newer_name),
    ("temperature", _without("temperature")),
    ("response_format", _without("response_format")),
    ("json_schema", _without("response_format")),
)


class Amended:
    """The amendments that a server has made necessary so far, shared by threads."""

    def __init__(self) -> None:
        self._learned: list[Amendment] = []
        self._lock = Lock()

    def __call__(self, body: Body) -> Body:
        """The body as this server takes it, for all that is known."""
        for amend in list(self._learned):
            body = amend(body)
        return body

    def learn(self, body: Body, complaint: str) -> bool:
        """Whether the complaint about this body names something that can be mended; it is, from now on."""
        for named, amend in AMENDMENTS:
            if named in complaint and amend(body) != body:
                with self._lock:
                    self._learned += [] if amend in self._learned else [amend]
                return True
        return False
