"""What a server does not accept in a request, and the request without it: learned once, kept for the rest of the run.

Servers of one protocol differ in what they take: twenty alternatives of a token or five, max_tokens or its newer name,
a temperature or none. They say so with status 400, 403, 404, 422 or 501 and name the parameter: in a field `param`, or
in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

from eyespot.llms.errors import StatusError
from eyespot.types import Adjustment

Body: TypeAlias = Mapping[str, Any]
Amendment: TypeAlias = Callable[[Body], Body]

FEWER = 5  # alternatives of a token where twenty are too many
LEAST = 16  # tokens of an answer, where fewer are refused
# As OpenAI and Ollama name it, and as vLLM, SGLang and llama.cpp do; both pass over what they do not know
NO_THOUGHT = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}
THOUGHT = 2048  # tokens of an answer, where a model thinks before it
REFUSALS = (400, 403, 404, 422, 501)
PROBABILITIES = ("logprobs", "top_logprobs")
LIMIT, NEWER = "max_tokens", "max_completion_tokens"
LIMITS = (LIMIT, NEWER, "max_output_tokens")  # the last one is what routers call it on the way to another protocol
FORMS = ("response_format", "json_schema")
NEEDED = ("model", "messages", "system")  # a request without them is none


def changes(request: Body, sent: Body) -> tuple[Adjustment, ...]:
    """Which fields of a request were changed or left out before it was sent."""
    fields = []
    for name, value in request.items():
        sent_name = NEWER if name == LIMIT and LIMIT not in sent else name
        as_sent = (sent_name, _plain(sent[sent_name])) if sent_name in sent else ("", None)
        if (name, _plain(value)) != as_sent:
            fields.append(Adjustment(name, _plain(value), *as_sent))
    return tuple(fields)


def left_out(several: Iterable[Adjustment]) -> list[str]:
    """The fields that were left out, each with its value: "temperature 0.25"."""
    return list(dict.fromkeys(f"{change.field} {change.asked}" for change in several if not change.sent_as))


def _plain(value: Any) -> Any:
    """A form of answers by its kind, for its schema is long."""
    return value["type"] if isinstance(value, Mapping) and "json_schema" in value else value


# -- how a request is amended -------------------------------------------------------------------------------------


def fewer_alternatives(body: Body) -> Body:
    """Five alternatives of a token where more are asked for."""
    return {**body, "top_logprobs": FEWER} if body.get("top_logprobs", 0) > FEWER else body


def room(body: Body) -> Body:
    """A limit that leaves room for a word."""
    return {name: max(value, LEAST) if name in LIMITS else value for name, value in body.items()}


def room_to_think(body: Body) -> Body:
    """A limit that leaves room for thought, which counts as part of the answer."""
    return {name: max(value, THOUGHT) if name in LIMITS else value for name, value in body.items()}


def without_thought(body: Body) -> Body:
    """The request for an answer without thought before it; as it is where it says something of that."""
    return body if any(name in body for name in NO_THOUGHT) else {**body, **NO_THOUGHT}


def newer_name(body: Body) -> Body:
    """The limit of tokens under the name that reasoning models want."""
    return {NEWER if name == LIMIT else name: value for name, value in body.items()}


def without(*names: str) -> Amendment:
    """The request without these fields."""
    return lambda body: {name: value for name, value in body.items() if name not in names}


@dataclass(frozen=True)
class _Rule:
    """What a complaint must be about, and a sentence of it hold, for an amendment to help."""

    about: tuple[str, ...]
    amend: Amendment
    saying: re.Pattern[str] | None = None


RULES = (  # the gentlest first
    _Rule(PROBABILITIES, fewer_alternatives, re.compile(r"top_logprobs|\d")),
    _Rule(PROBABILITIES, without(*PROBABILITIES)),
    _Rule(LIMITS, room, re.compile(r"below minimum|at least|greater than or equal", re.IGNORECASE)),
    _Rule(LIMITS, newer_name),
    _Rule(("temperature",), without("temperature")),
    _Rule(FORMS, without("response_format")),
)


def amendment(body: Body, trouble: StatusError) -> Amendment | None:
    """What corrects the request, if the server's complaint names something that can be."""
    if trouble.status not in REFUSALS or trouble.declined:
        return None
    if trouble.cut_off:
        return room if room(body) != body else None
    named = _parameter(body, trouble)
    for rule in RULES:
        pattern = rf"(?<![a-z_])({'|'.join(rule.about)})(?![a-z_])"
        fits = named in rule.about if named else re.search(pattern, trouble.text, re.IGNORECASE)
        if fits and (rule.saying is None or rule.saying.search(trouble.text)) and rule.amend(body) != body:
            return rule.amend
    return None


def refused(body: Body, trouble: StatusError) -> str:
    """The field of the request that the server will not have with any question; "" if its complaint names none."""
    if trouble.status not in REFUSALS or trouble.declined or trouble.cut_off:
        return ""
    quoted = (name for name in body if name not in NEEDED and re.search(rf"[`'\"]{name}\b", trouble.text))
    named = _parameter(body, trouble) or next(quoted, "")
    return "" if named in (*NEEDED, *LIMITS) else named  # what a limit may be depends on the question


def _parameter(body: Body, trouble: StatusError) -> str:
    """The field that the complaint names as such; "" if it names none, or none of the request."""
    parts = re.split(r"[^a-z_]+", trouble.param.casefold())
    known = {*body, *PROBABILITIES, *LIMITS}
    return next((part for part in parts if part in known), "")


class UnsupportedFields:
    """What this server does not accept, as far as it has said so, shared by threads."""

    def __init__(self) -> None:
        self._learned: list[Amendment] = []
        self._tried: set[frozenset[str]] = set()  # fields that went through together
        self._changes: dict[Adjustment, None] = {}
        self._lock, self._first = Lock(), Lock()

    def adapted(self, body: Body) -> Body:
        """The body as this server accepts it, as far as is known."""
        for amend in list(self._learned):
            body = amend(body)
        return body

    def learn(self, amend: Amendment) -> None:
        """Amend all requests in this way from now on."""
        with self._lock:
            self._learned += [] if amend in self._learned else [amend]

    def has(self, amend: Amendment) -> bool:
        """Whether this was learned of the server."""
        return amend in self._learned

    def record(self, several: Iterable[Adjustment]) -> None:
        """Remember what became of fields of a request that was answered."""
        with self._lock:
            self._changes |= dict.fromkeys(several)

    @property
    def changes(self) -> list[Adjustment]:
        """What became of fields of requests so far, each once."""
        return list(self._changes)

    @contextmanager
    def one_at_a_time(self, body: Body) -> Iterator[None]:
        """Wait while another thread sends fields that were never sent together: what it learns, the others know."""
        fields = frozenset(body)
        with ExitStack() as alone:
            if fields not in self._tried:
                alone.enter_context(self._first)
            if fields in self._tried:
                alone.close()
            try:
                yield
            finally:  # also after a failure: a server that never answers must not make all wait for one another
                self._tried.add(fields)
