"""Pairs, verdicts and what they cost; the role of a judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from eyespot.types.queries import Query


class Pair(NamedTuple):
    """A query and one picture that is judged for it."""

    query: Query
    image: str  # its id
    path: Path  # where its pixels are


@dataclass(frozen=True)
class Verdict:
    """What a judge says of a pair: how probable it is that the picture is relevant (0 to 1), or a grade, or both."""

    probability: float | None = None
    grade: int | None = None
    reason: str = ""
    confidence: float | None = None  # the judge's own, 0 to 1

    def __post_init__(self) -> None:
        if self.probability is None and self.grade is None:
            raise ValueError("a verdict has a probability or a grade")
        if any(share is not None and not 0 <= share <= 1 for share in (self.probability, self.confidence)):
            raise ValueError("probability and confidence lie between 0 and 1")


class Spent(NamedTuple):
    """What answers cost: requests that left this machine (retries too), tokens, and money in US dollars."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    def plus(self, more: Spent) -> Spent:
        """Both together."""
        calls, tokens_in, tokens_out, money = more
        return Spent(self.calls + calls, self.tokens_in + tokens_in, self.tokens_out + tokens_out, self.money + money)

    def times(self, count: int) -> Spent:
        """So many of it."""
        return Spent(self.calls * count, self.tokens_in * count, self.tokens_out * count, self.money * count)


class Answer(NamedTuple):
    """What came back for a pair: a verdict, or why there is none.

    A model that declines to look (`refused`) gives a verdict of probability 0, as INQUIRE counts it.
    """

    pair: Pair
    verdict: Verdict | None
    failure: str = ""  # one sentence where there is no verdict
    refused: bool = False
    spent: Spent = Spent()
    prompt: str = ""  # a digest of how it was asked, where that is another way than the judge's own


class Judge(Protocol):
    """Who looks at pictures and says whether they are what the query asks for."""

    name: str  # who it is: "openai:gpt-5-mini", "transformers:llava-hf/llava-1.5-7b-hf@main", "person:ada"
    prompt: str  # a digest of how it is asked: another wording is another judge

    def judge(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair, each as soon as it is there, in any order."""
        ...


class Judgement(NamedTuple):
    """A verdict and how it came about: who judged which pair, asked how, when, seen at which rank, at what price."""

    query: str  # digest of what was asked, whatever its id
    image: str  # id of the picture: the digest of its bytes
    judge: str
    prompt: str
    verdict: Verdict | None
    failure: str = ""
    refused: bool = False
    rank: int | None = None  # from 1, where the picture was seen in a ranking
    at: float = 0.0  # seconds since 1970
    spent: Spent = Spent()
