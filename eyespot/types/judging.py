"""Pairs, verdicts and what they cost; the role of a judge."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from eyespot.types.language_models import Exchange, LanguageModel, Spent
from eyespot.types.search import Query


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
    exchanges: tuple[Exchange, ...] = ()  # with the model, in order


class AnswerStream(Protocol):
    """The answers of a judge as they arrive, in any order."""

    def __iter__(self) -> Iterator[Answer]: ...

    def __next__(self) -> Answer: ...

    def ready(self) -> list[Answer]:
        """What else is ready now, without waiting."""

    def throw(self, reason: BaseException) -> Answer:
        """Start no more requests and give the next answer in flight; raises `reason` once there is none."""


class SequentialAnswers(Iterator[Answer]):
    """The answers of a judge that does one pair after another, mostly a generator: never more than one is ready."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)

    def __next__(self) -> Answer:
        return next(self._answers)

    def ready(self) -> list[Answer]:
        """None: each answer is made when it is taken."""
        return []

    def throw(self, reason: BaseException) -> Answer:
        """Raise `reason` in the generator, which may yield answers before it ends."""
        if isinstance(self._answers, Generator):
            answer: Answer = self._answers.throw(reason)
            return answer
        raise reason


class Judge(Protocol):
    """Says of pictures whether they are what a query asks for."""

    @property
    def name(self) -> str:
        """Who it is: "openai:gpt-5-mini", "transformers:llava-hf/llava-1.5-7b-hf@main", "person:ada"."""

    @property
    def prompt(self) -> str:
        """A digest of how it is asked: another wording is another judge."""

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """The prompts of ways that may stand in for its own, the finest scale first, each with a sentence on it."""

    @property
    def notes(self) -> list[str]:
        """What users should know of the answers so far, a sentence each."""

    @property
    def language_model(self) -> LanguageModel | None:
        """The model behind an endpoint that answers for it, and may cost money; None if there is none."""

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair, each as soon as it is there, in any order."""


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
    exchanges: tuple[Exchange, ...] = ()  # to be recorded; `Judgements.exchanges` reads them
