"""What a judge behind an endpoint can be told, and the judge made of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from eyespot.judges._endpoint.judging import AnswerMode, EndpointJudge
from eyespot.judges._wording import JudgePrompt
from eyespot.llms.budget import Budget
from eyespot.llms.client import Endpoint, RetryPolicy, free
from eyespot.llms.images import SIDE, JpegEncoder
from eyespot.llms.prices import Prices, read_prices
from eyespot.llms.protocols import Dialect
from eyespot.llms.rate_limit import CancellableSleep, RateLimiter
from eyespot.llms.transport import Wire
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.llms.images import Reader

VENDORS = ("api.openai.com", "api.anthropic.com")
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # whose tokens cost nothing

OBJECT = """write the request's own fields, as in '{"reasoning_effort": "low"}'"""
SET = {  # by whoever asks, and what a user may say in its place
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "say answer_tokens instead"),
    **dict.fromkeys(("logprobs", "top_logprobs", "logprob_token_ids", "response_format"), "say answer instead"),
    **dict.fromkeys(("model", "messages", "system", "temperature", "n", "stream"), "leave it out"),
}


def request_fields(text: str) -> dict[str, Any]:
    """The fields that a JSON object holds; `UsageError` for other text."""
    try:
        found = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise UsageError(f"extra is no JSON ({error.msg} at {error.pos}); {OBJECT}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"extra is no JSON ({error}); {OBJECT}") from None
    if not isinstance(found, dict):
        raise UsageError(f"extra is no JSON object; {OBJECT}")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


# What a user may say of such a judge. Keys are left to the environment: any list of processes shows a command line.
OPTIONS: dict[str, Callable[[str], Any]] = {
    "url": str,
    "answer": str,
    "votes": int,
    "answer_tokens": int,
    "side": int,
    "workers": int,
    "requests_per_minute": int,
    "tokens_per_minute": int,
    "timeout": float,
    "attempts": int,
    "extra": request_fields,
}
NUMBERS = (
    "side",
    "workers",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout",
    "attempts",
    "votes",
    "answer_tokens",
)


@dataclass(frozen=True)
class EndpointSettings:
    """Options of `load`, with their defaults."""

    budget: Budget = field(default_factory=Budget)
    wording: JudgePrompt | None = None  # None: the judge's own for the way it asks
    url: str | None = None  # the endpoint's address; None: from the environment, then the vendor's own
    key: str | None = None  # None: from the environment; a local server needs none
    read: Reader | None = None  # a file to an upright RGB picture; None: Pillow
    side: int = SIDE  # pixels of the longer side of what is sent
    workers: int = 8  # requests under way at once
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: float = 60.0  # seconds without a byte until an answer counts as lost
    attempts: int = 6  # of one request, the first included
    first_rest: float = 1.0  # seconds; the rests after it may be twice as long each
    answer: str = ""  # how it is to answer: words, grades, votes or, where the endpoint can, probabilities
    votes: int = 5
    answer_tokens: int = 16  # the most that an answer in words may have
    roomy: bool = True  # models that think get more than that, unless the user says what they may have
    prices: Prices | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # further fields of each request, as they are

    @classmethod
    def of(cls, judge: str, given: Mapping[str, Any]) -> EndpointSettings:
        """The settings that options give, None being the default; `UsageError` for others and for senseless numbers."""
        known = {one.name for one in fields(cls)}
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"{judge} has no option {unknown[0]!r}; there are: {', '.join(sorted(known))}")
        said = {name: value for name, value in given.items() if value is not None}
        made = cls(**{"roomy": "answer_tokens" not in said, **said})
        for name in NUMBERS:
            if (value := getattr(made, name)) is not None and value <= 0:
                raise UsageError(f"{judge}: {name} is {value}; give a number above 0")
        if name := next((name for name in made.extra if name in SET), ""):
            raise UsageError(f"{judge}: extra holds {name}, which is set already; {SET[name]}")
        return made

    def addressed(self, url_named: str, key_named: str) -> tuple[str | None, str | None, float]:
        """Address, key and timeout of a `Wire`; what is not given comes from these environment variables."""
        environment = {name: os.environ.get(name) or None for name in (url_named, key_named)}
        return self.url or environment[url_named], self.key or environment[key_named], self.timeout

    def judge(self, name: str, wire: Wire, dialect: Dialect, way: AnswerMode, wording: JudgePrompt) -> EndpointJudge:
        """The judge `name` ("openai:MODEL") that asks the model behind the wire in this way.

        Behind another address than the vendor's own the judge is "openai:MODEL@HOST": a model's name says little there.
        """
        prices, model, rest = self.prices or read_prices(), name.partition(":")[2], CancellableSleep()
        endpoint = Endpoint(
            wire,
            model,
            dialect,
            till=self.budget,
            pace=RateLimiter(self.requests_per_minute, self.tokens_per_minute, sleep=rest),
            patience=RetryPolicy(self.attempts, self.first_rest),
            money=free if _costs_nothing(wire, model, prices) else partial(prices.cost, model),
            rest=rest,
            extra=self.extra,
            roomy=self.roomy,
        )
        pictures = JpegEncoder(self.side, self.read)
        # Where a model is asked; a server of this machine may move between ports and is the same
        host = urlsplit(wire.address).hostname or ""
        place = "" if host in VENDORS else f"@{'localhost' if host in HERE else host}"
        return EndpointJudge(name + place, endpoint, wording, pictures, way, self.workers, prices)


def _costs_nothing(wire: Wire, model: str, prices: Prices) -> bool:
    """A model on this machine for which the user has set no price."""
    return prices.of(model) is None and urlsplit(wire.address).hostname in HERE
