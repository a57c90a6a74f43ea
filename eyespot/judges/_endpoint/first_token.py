"""The score of INQUIRE through an endpoint: how much of the first token's probability is yes, against no."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, NamedTuple

from eyespot.judges._endpoint.judging import VerdictWithFallback, VisionPrompt
from eyespot.judges._endpoint.ways import MOST, Words, bare, in_words
from eyespot.judges._prompt import JudgePrompt
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import SORRY, BadAnswer, Declined, Halted, Refused
from eyespot.types import EyespotError, Reply, Token, Verdict

ALTERNATIVES = 20  # of the first token: the most that servers give
UNFINISHED = re.compile(r"could not finish the message", re.IGNORECASE)  # OpenAI, where thinking took all tokens
ENDS = (EyespotError, Halted)  # the run, but not before an answer that is there already is handed out
EXCUSES = {"i", "i'm", "i’m", "sorry", "unfortunately"}  # how a refusal begins whose second token nobody has seen
DOUBTFUL = 0.9  # yes and no together: below this the model would rather have said something else


class Shares(NamedTuple):
    """How probable it is that the answer begins with yes, and with no."""

    yes: float
    no: float

    @property
    def score(self) -> float:
        """yes / (yes + no), the score of INQUIRE; without a yes 0, without a no 1."""
        return self.yes / (self.yes + self.no) if self.yes else 0.0


def shares(tokens: Iterable[Token], wording: JudgePrompt) -> Shares:
    """How probable the two answers are among a token's alternatives, all spellings (" Yes", "yes", "YES") summed.

    Of an exact wording whose code looks for the words, only the token that is the word counts.
    """
    spelled = str if wording.exact and wording.token is None else bare
    sums = {spelled(wording.yes): 0.0, spelled(wording.no): 0.0}
    for token, logprob in tokens:
        if (word := spelled(token)) in sums:
            sums[word] += math.exp(logprob)
    return Shares(*sums.values())


@dataclass
class FirstToken:
    """p(yes) / (p(yes) + p(no)) from the first token; a reply without probabilities counts by its words.

    Every picture is asked for probabilities, whatever came with the others, so that its verdict depends on its own
    reply. One token is enough for a word; where it was not, all answers may be longer from then on. Where yes and no
    are not among the likeliest, vLLM gives the probabilities of tokens that are named. A server whose first reply has
    no probabilities may have an endpoint for decisions (/v1/systemone), which words the question in its own way.
    """

    wording: JudgePrompt
    tokens: int  # the most that an answer in words may have
    special: str = ""
    seen: int = 0
    doubtful: int = 0
    _most: int = 1  # tokens of an answer
    _tried: bool = False  # whether it is known if the server's own decision is needed
    _decision: SystemOne | None = None
    _named: Mapping[str, Any] | None = None  # what names the answers' tokens to the server; None: it was never needed
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def fallbacks(self) -> dict[str, str]:
        """What may stand in for the probabilities, the finest first."""
        return {SystemOne.special: SystemOne.sentence, Words.special: Words.sentence}

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        if self._decision is not None:
            return VerdictWithFallback(self._decision(endpoint, sight), SystemOne.special)
        named = self._named
        reply = self._reply(endpoint, sight, named)
        if reply.logprobs:
            self._tried = True
            shares_reply, shares_named = (reply, named)
            found = shares(shares_reply.logprobs or (), self.wording)
            reason = "" if any(found) else self._neither(shares_reply.logprobs or ())
            if reason and shares_named is None and self._naming(endpoint):
                found = shares(self._reply(endpoint, sight, self._named).logprobs or (), self.wording)
                reason = "" if any(found) else reason
            with self._lock:
                self.seen += 1
                self.doubtful += found.yes + found.no < DOUBTFUL
            return VerdictWithFallback(Verdict(probability=min(1.0, found.score), reason=reason))
        if (verdict := self._decided(endpoint, sight)) is not None:
            return VerdictWithFallback(verdict, SystemOne.special)
        try:
            words = in_words(reply, self.wording)
        except BadAnswer as why:
            raise self._short(why) from None
        return VerdictWithFallback(words, Words.special)

    def notes(self, name: str) -> list[str]:
        """How many answers were in doubt."""
        if not self.doubtful:
            return []
        return [
            f"in {self.doubtful:,} of {self.seen:,} answers of {name} {self.wording.yes} and {self.wording.no} had "
            f"together less than {DOUBTFUL:g} of the probability: those scores mean little, try another wording"
        ]

    def _reply(self, endpoint: Endpoint, sight: VisionPrompt, named: Mapping[str, Any] | None) -> Reply:
        options = {"max_tokens": self._most, "temperature": 0, "logprobs": True, "top_logprobs": ALTERNATIVES}
        try:
            reply = endpoint.chat(sight.messages, **options, **(named or {}))
        except Refused as why:
            if self._most >= self.tokens or not UNFINISHED.search(str(why)):
                raise
            raise self._short(why) from None
        if SORRY.match(reply.text):
            raise Declined(repr(reply.text[:MOST]))
        return reply

    def _neither(self, tokens: Sequence[Token]) -> str:
        """What was there in place of both answers; `Declined` where that is how an excuse begins."""
        token, _ = max(tokens, key=lambda one: one[1])
        why = f"neither {self.wording.yes} nor {self.wording.no} is among the first tokens; the likeliest is {token!r}"
        if bare(token) in EXCUSES:
            raise Declined(why)
        return why

    def _short(self, why: Exception) -> BadAnswer:
        """One token was perhaps too few for an answer: the next ones may be longer."""
        self._most = self.tokens
        return BadAnswer(str(why))

    # -- what else the server has ---------------------------------------------------------------------------

    def _naming(self, endpoint: Endpoint) -> bool:
        """Whether the answers' tokens can be named to the server; it is asked once."""
        with self._lock, suppress(*ENDS):
            if self._named is None:
                numbers = token_numbers(endpoint, self.wording)
                self._named = {"logprob_token_ids": numbers} if numbers else {}
        return bool(self._named)

    def _decided(self, endpoint: Endpoint, sight: VisionPrompt) -> Verdict | None:
        """The server's own decision, where its first reply had no probabilities and it has decisions instead."""
        with self._lock, suppress(*ENDS):
            if not self._tried:
                decision = SystemOne(self.wording)
                verdict = decision.offered(endpoint, sight)
                self._tried, self._decision = True, decision if verdict is not None else None
                return verdict
        return None if self._decision is None else self._decision(endpoint, sight)


def token_numbers(endpoint: Endpoint, wording: JudgePrompt) -> list[int]:
    """The numbers of the answers' spellings that are one token, from vLLM's own tokenizer; none on other servers."""
    root = endpoint.address.removesuffix("/v1")
    found = []
    for word in (wording.yes, wording.no):
        for spelling in dict.fromkeys((word, f" {word}", word.lower(), f" {word.lower()}", word.upper())):
            payload = {"model": endpoint.model, "prompt": spelling, "add_special_tokens": False}
            if (answer := endpoint.request_if_supported(f"{root}/tokenize", payload)) is None:
                return []
            numbers = answer.get("tokens")
            found += numbers if isinstance(numbers, list) and len(numbers) == 1 else []
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class SystemOne:
    """The yes/no decision of a server's /v1/systemone, as transformers and vLLM offer it."""

    wording: JudgePrompt
    special: ClassVar[str] = "decision"
    sentence: ClassVar[str] = "its server's own yes/no decision is taken, which puts the question in its own words"

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> Verdict:
        return self._verdict(endpoint.request("/systemone", self._request_body(endpoint, sight)))

    def offered(self, endpoint: Endpoint, sight: VisionPrompt) -> Verdict | None:
        """The decision, or None where this server has none for this model."""
        answer = endpoint.request_if_supported("/systemone", self._request_body(endpoint, sight))
        try:
            return self._verdict(answer or {})
        except BadAnswer:
            return None

    def _request_body(self, endpoint: Endpoint, sight: VisionPrompt) -> dict[str, Any]:
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
