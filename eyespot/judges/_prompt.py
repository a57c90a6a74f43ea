"""The prompt of a judge: the words around the query, and the two answers. Another wording is another judge.

And what judges share that cost nothing and give one answer after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eyespot.llms.fences import DATA, filled
from eyespot.storage.digests import text_digest
from eyespot.types import Answer, AnswerStream, Pair, Query, SequentialAnswers, Term, UsageError

QUERY = "{query}"  # where the query's words go


@dataclass(frozen=True)
class JudgePrompt:
    """A question about one picture that is answered by one of two words.

    `question` holds `{query}` once or more often; other braces stay as they are. `system` may be empty. With `turns`
    the prompt is that of another program (`exact`): one token is yes and one is no, and status 400 scores 0. Raises
    `UsageError` for a question without the query and for two answers that no reader could tell apart.
    """

    name: str
    system: str
    question: str
    yes: str = "Yes"
    no: str = "No"
    turns: str = ""  # the whole prompt of a local model, where it is not the family's own; holds `{query}` too
    token: int | None = None  # which id of the tokens of yes and no counts; None: all spellings do

    def __post_init__(self) -> None:
        if QUERY not in self.question:
            raise UsageError(f"the wording {self.name!r} never names what is looked for; put {QUERY} into its question")
        yes, no = (answer.strip().casefold() for answer in (self.yes, self.no))
        if not yes or not no or yes == no:
            raise UsageError(f"the wording {self.name!r} needs two answers that differ; set yes and no")

    @property
    def digest(self) -> str:
        """Sixteen hex digits over all that the judge is sent; the name is not, so renaming asks nothing again."""
        way = (self.turns, str(self.token)) if self.exact else (DATA,)
        return text_digest(self.system, self.question, self.yes, self.no, *way)

    @property
    def exact(self) -> bool:
        """Whether it is another program's prompt, to be put as that program does."""
        return bool(self.turns)

    def text_for(self, words: str) -> str:
        """The whole text that a local model of another program gets for a query of these words."""
        return (self.turns or self.question).replace(QUERY, words)

    def ask(self, query: Query) -> str:
        """The question with the query in it, which is fenced unless the prompt is another program's."""
        words = described(query)
        return self.question.replace(QUERY, words) if self.exact else filled(self.question, {"query": words})


PLAIN = JudgePrompt(
    name="plain",
    system="You check photographs against a description. Judge only by what can be seen.",
    question='Description: "{query}"\nDoes the photograph show this? Reply with one word, Yes or No, and nothing else.',
)


# -- the query in words -------------------------------------------------------------------------------------


def described(query: Query) -> str:
    """A query in words: "a heron, like the example picture, without people".

    Weights have no words: only their sign counts. A judge that is given words alone can make nothing of an example;
    `examples` says whether there is one.
    """
    wanted = [_part(query, term) for term in query.terms if term.weight >= 0]
    unwanted = [f"without {_part(query, term)}" for term in query.terms if term.weight < 0]
    return ", ".join([*wanted, *unwanted])


def examples(query: Query) -> list[Path]:
    """The query's own pictures, in the order in which `described` counts them."""
    return [term.image for term in query.terms if term.image is not None]


def _part(query: Query, term: Term) -> str:
    if term.text is not None:
        return term.text
    pictures = [one for one in query.terms if one.image is not None]
    if len(pictures) == 1:
        return "what the example picture shows"
    return f"what example picture {1 + next(place for place, one in enumerate(pictures) if one is term)} shows"


class FreeJudge(ABC):
    """A judge with one kind of answer and no model that is paid for; a subclass gives the answers."""

    fallbacks: ClassVar[Mapping[str, str]] = {}  # every answer is of one kind
    language_model: ClassVar[None] = None  # answers cost nothing

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair, one after another; see `answers`."""
        return SequentialAnswers(self.answers(pairs))

    @abstractmethod
    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair."""
