"""Answers of late that a server remembers, so that whoever asks again waits for nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class RecentAnswers(Generic[Answer]):
    """At most so many answers by their keys, for any number of threads; what was not asked for longest goes first."""

    def __init__(self, most: int) -> None:
        self.most, self._lock = most, Lock()
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer that is remembered under a key, else a new one; two who ask at once may both make it."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        made = make()
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > self.most:
                self._answers.popitem(last=False)
        return made

    def values(self) -> list[Answer]:
        """All that are remembered."""
        with self._lock:
            return list(self._answers.values())
