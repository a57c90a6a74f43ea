"""What judges share that cost nothing and give one answer after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from eyespot.types import Answer, AnswerStream, Pair, SequentialAnswers


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
