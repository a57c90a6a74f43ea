"""What judges share that cost nothing and give one answer after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from eyespot.types import Answer, AnswerStream, Pair, SequentialAnswers


class FreeJudge(ABC):
    """A judge with one kind of answer and no model that is paid for; a subclass gives the answers."""

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """None: every answer is of one kind."""
        return {}

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def language_model(self) -> None:
        """None: answers cost nothing."""
        return None

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair, one after another; see `answers`."""
        return SequentialAnswers(self.answers(pairs))

    @abstractmethod
    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair."""
