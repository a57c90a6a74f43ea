"""Answers of late that a server remembers, so that whoever asks again waits for nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class RecentAnswers(Generic[Answer]):
    """Answers by their keys, for any number of threads; what was not asked for longest goes first, the latest stays.

    most: how many answers, or where `size` gives the bytes of one how many bytes.
    """

    def __init__(self, most: int, size: Callable[[Answer], int] = lambda _: 1) -> None:
        self.most, self.size, self._size_of, self._lock = most, 0, size, Lock()
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def known(self, key: Hashable) -> Answer | None:
        """The answer that is remembered under a key, if any."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: Hashable, answer: Answer) -> None:
        """Remember an answer."""
        with self._lock:
            self._forget(self._answers.pop(key, None))
            self._answers[key] = answer
            self.size += self._size_of(answer)
            while self.size > self.most and len(self._answers) > 1:
                self._forget(self._answers.popitem(last=False)[1])

    def _forget(self, answer: Answer | None) -> None:
        self.size -= 0 if answer is None else self._size_of(answer)

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer that is remembered under a key, else a new one; two who ask at once may both make it."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        made = make()
        self.put(key, made)
        return made

    def values(self) -> list[Answer]:
        """All that are remembered."""
        with self._lock:
            return list(self._answers.values())
