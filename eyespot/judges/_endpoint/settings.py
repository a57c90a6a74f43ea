"""The options of a judge behind an endpoint, and the judge that they make."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from eyespot import llms
from eyespot.judges._endpoint.judging import AnswerMode, EndpointJudge
from eyespot.judges._prompt import JudgePrompt
from eyespot.llms.images import SIDE
from eyespot.llms.settings import POSITIVE, refuse_not_positive
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.llms.images import Reader

OBJECT = """write the request's own fields, as in '{"reasoning_effort": "low"}'"""
SET = {  # fields that the judge sets itself, and what to do instead
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "say answer_tokens instead"),
    **dict.fromkeys(("logprobs", "top_logprobs", "logprob_token_ids", "response_format"), "say answer instead"),
    **dict.fromkeys(("model", "messages", "system", "temperature", "n", "stream"), "leave it out"),
}


def request_fields(text: str) -> dict[str, Any]:
    """The fields that a JSON object holds; `UsageError` for other text."""
    try:
        request = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(f"extra is no JSON ({error.msg} at {error.pos}); {OBJECT}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"extra is no JSON ({error}); {OBJECT}") from None
    if not isinstance(request, dict):
        raise UsageError(f"extra is no JSON object; {OBJECT}")
    return request


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


# What users may say of such a judge. Keys are left to the environment: any list of processes shows a command line.
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
COUNTS = ("side", "workers", "votes", "answer_tokens")


@dataclass(frozen=True)
class EndpointJudgeSettings:
    """Options of `load`, with their defaults; `model` are those of the language model (`EndpointSettings`)."""

    wording: JudgePrompt | None = None  # None: the judge's own for its answers
    read: Reader | None = None  # a file to an upright RGB picture; None: Pillow
    side: int = SIDE  # pixels of the longer side of what is sent
    workers: int = 8  # requests in flight at once
    answer: str = ""  # words, grades, votes or, where the endpoint can, probabilities
    votes: int = 5
    answer_tokens: int = 16  # the most that an answer in words may have
    model: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, judge: str, given: Mapping[str, Any]) -> EndpointJudgeSettings:
        """The settings that options give, None being the default; `UsageError` for unknown ones and numbers below 0."""
        own = {option.name for option in fields(cls)} - {"model"}
        known = own | {option.name for option in fields(llms.EndpointSettings)} - {"strict"}
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"{judge} has no option {unknown[0]!r}; there are: {', '.join(sorted(known))}")
        options = {name: value for name, value in given.items() if value is not None}
        refuse_not_positive(judge, {name: options.get(name) for name in (*COUNTS, *POSITIVE)})
        if name := next((name for name in options.get("extra", {}) if name in SET), ""):
            raise UsageError(f"{judge}: extra holds {name}, which is set already; {SET[name]}")
        # Models that think get more tokens, unless the user says how many an answer may have
        model = {
            "raise_token_limit": "answer_tokens" not in options,
            **{name: value for name, value in options.items() if name not in own},
        }
        return cls(**{name: value for name, value in options.items() if name in own}, model=model)

    def judge(self, name: str, way: AnswerMode, wording: JudgePrompt) -> EndpointJudge:
        """The judge that asks the language model of this name ("openai:MODEL") in this way."""
        prices = self.model.get("prices") or llms.read_prices()
        budget = self.model.get("budget") or llms.Budget()
        endpoint = llms.load(name, **{**self.model, "prices": prices, "budget": budget})
        pictures = llms.JpegEncoder(self.side, self.read)
        return EndpointJudge(endpoint, wording, pictures, way, self.workers, budget, prices)
