"""The score of INQUIRE through an endpoint: how much of the first token's probability is yes, against no."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

from eyespot.judges._endpoint.judging import Sight
from eyespot.judges._endpoint.ways import SORRY, Words, bare
from eyespot.judges._wording import Wording
from eyespot.models.endpoint.client import Endpoint
from eyespot.models.endpoint.dialects import Token
from eyespot.models.endpoint.troubles import BadAnswer, Declined
from eyespot.types import Verdict

ALTERNATIVES = 20  # of the first token: the most that servers give
DECISION, WORDS = "decision", Words.special
DOUBTFUL = 0.9  # yes and no together: below this the model would rather have said something else


class Shares(NamedTuple):
    """How probable it is that the answer begins with yes, and with no."""

    yes: float
    no: float

    @property
    def score(self) -> float:
        """yes / (yes + no), the score of INQUIRE; without a yes 0, without a no 1."""
        return self.yes / (self.yes + self.no)


def shares(tokens: Iterable[Token], wording: Wording) -> Shares:
    """How probable the two answers are among a token's alternatives, all spellings (" Yes", "yes", "YES") summed."""
    sums = {bare(wording.yes): 0.0, bare(wording.no): 0.0}
    for token, logprob in tokens:
        if (word := bare(token)) in sums:
            sums[word] += math.exp(logprob)
    return Shares(*sums.values())


class NoProbabilities(Exception):
    """The reply came without the alternatives of its first token."""


@dataclass
class FirstToken:
    """p(yes) / (p(yes) + p(no)) from the first token; where the server gives no probabilities, the next best it has.

    Where yes and no are not among the likeliest, vLLM gives the probabilities of tokens that are named. A server
    without probabilities may have an endpoint for decisions (/v1/systemone), which words the question in its own way;
    if not, the answer's words count.
    """

    wording: Wording
    tokens: int  # the most that an answer in words may have
    seen: int = 0
    doubtful: int = 0
    instead: Words | Decision | None = None
    _named: Mapping[str, Any] | None = None  # what names the answers' tokens to the server; None: it was never needed
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def special(self) -> str:
        """Nothing, or what stands in for the probabilities that this server does not tell."""
        return self.instead.special if self.instead else ""

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What may stand in for them."""
        return () if self.instead else (DECISION, WORDS)

    def __call__(self, endpoint: Endpoint, sight: Sight) -> Verdict:
        if self.instead is None:
            try:
                return self._by_first_token(endpoint, sight)
            except NoProbabilities:
                self._fall_back(endpoint, sight)
        assert self.instead is not None
        return self.instead(endpoint, sight)

    def notes(self, name: str) -> list[str]:
        """The fallback, once, and how many answers were in doubt."""
        found = [f"{name} gives no token probabilities; {self.instead.sentence}"] if self.instead else []
        if self.doubtful:
            found.append(
                f"in {self.doubtful:,} of {self.seen:,} answers of {name} {self.wording.yes} and {self.wording.no} had "
                f"together less than {DOUBTFUL:g} of the probability: those scores mean little, try another wording"
            )
        return found

    def _by_first_token(self, endpoint: Endpoint, sight: Sight) -> Verdict:
        found = self._shares(endpoint, sight)
        if found.yes + found.no == 0 and self._naming(endpoint):
            found = self._shares(endpoint, sight)
        if found.yes + found.no == 0:
            raise BadAnswer(f"neither {self.wording.yes} nor {self.wording.no} is among the model's likeliest answers")
        with self._lock:
            self.seen += 1
            self.doubtful += found.yes + found.no < DOUBTFUL
        return Verdict(probability=min(1.0, found.score))

    def _shares(self, endpoint: Endpoint, sight: Sight) -> Shares:
        asked = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": ALTERNATIVES}
        reply = endpoint.chat(sight.messages, **asked, **(self._named or {}))
        if reply.logprobs is None:
            if SORRY.match(reply.text):
                raise Declined(repr(reply.text))
            raise NoProbabilities
        return shares(reply.logprobs, self.wording)

    # -- what else the server has ---------------------------------------------------------------------------

    def _naming(self, endpoint: Endpoint) -> bool:
        """Whether the answers' tokens can be named to the server; it is asked once."""
        with self._lock:
            if self._named is None:
                numbers = token_numbers(endpoint, self.wording)
                self._named = {"logprob_token_ids": numbers} if numbers else {}
        return bool(self._named)

    def _fall_back(self, endpoint: Endpoint, sight: Sight) -> None:
        with self._lock:
            if self.instead is None:
                decision = Decision(self.wording)
                self.instead = decision if decision.offered(endpoint, sight) else Words(self.wording, self.tokens)


def token_numbers(endpoint: Endpoint, wording: Wording) -> list[int]:
    """The numbers of the answers' spellings that are one token, from vLLM's own tokenizer; none on other servers."""
    root = endpoint.wire.address.removesuffix("/v1")
    found = []
    for word in (wording.yes, wording.no):
        for spelling in dict.fromkeys((word, f" {word}", word.lower(), f" {word.lower()}", word.upper())):
            asked = {"model": endpoint.model, "prompt": spelling, "add_special_tokens": False}
            if (answer := endpoint.offers(f"{root}/tokenize", asked)) is None:
                return []
            numbers = answer.get("tokens")
            found += numbers if isinstance(numbers, list) and len(numbers) == 1 else []
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Decision:
    """The yes/no decision of a server's /v1/systemone, as transformers and vLLM offer it."""

    wording: Wording
    special: str = DECISION
    sentence: str = "its server's own yes/no decision is taken, which puts the question in its own words"

    def __call__(self, endpoint: Endpoint, sight: Sight) -> Verdict:
        return self._verdict(endpoint.request("/systemone", self._asked(endpoint, sight)))

    def offered(self, endpoint: Endpoint, sight: Sight) -> bool:
        """Whether this server has it for this model."""
        answer = endpoint.offers("/systemone", self._asked(endpoint, sight))
        try:
            self._verdict(answer or {})
        except BadAnswer:
            return False
        return True

    def _asked(self, endpoint: Endpoint, sight: Sight) -> dict[str, Any]:
        names = [f"IMG{number}" for number in range(len(sight.pictures))]
        pictures = zip(names, sight.pictures, strict=True)
        return {
            "model": endpoint.model,
            "state": " ".join(f"Picture: {name}" for name in names),
            "questions": {"shown": {"type": "noul", "instructions": sight.question}},
            "assets": {name: {"type": "image", "format": "jpeg", "data_base64": data} for name, data in pictures},
        }

    def _verdict(self, data: Mapping[str, Any]) -> Verdict:
        try:
            return Verdict(probability=float(data["answers"]["shown"]["noul"]))
        except (KeyError, TypeError, ValueError):
            raise BadAnswer("the server's decision has no probability") from None
