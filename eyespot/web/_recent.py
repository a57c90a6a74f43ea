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
        self._answers: OrderedDict[Hashable, tuple[Answer, int]] = OrderedDict()  # with their sizes when they came

    def known(self, key: Hashable) -> Answer | None:
        """The answer that is remembered under a key, if any."""
        with self._lock:
            if key not in self._answers:
                return None
            self._answers.move_to_end(key)
            return self._answers[key][0]

    def put(self, key: Hashable, answer: Answer) -> Answer:
        """Remember an answer, if none is remembered under this key; the one that is."""
        with self._lock:
            if key not in self._answers:
                self._answers[key] = answer, self._size_of(answer)
                self.size += self._answers[key][1]
            while self.size > self.most and len(self._answers) > 1:
                self.size -= self._answers.popitem(last=False)[1][1]
            return self._answers[key][0]

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer that is remembered under a key, else a new one; two who ask at once may both make it."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key][0]
        return self.put(key, make())

    def forget(self, gone: Callable[[Answer], bool]) -> None:
        """Forget the answers of which this holds."""
        with self._lock:
            for key in [key for key, (answer, _) in self._answers.items() if gone(answer)]:
                self.size -= self._answers.pop(key)[1]

    def values(self) -> list[Answer]:
        """All that are remembered, the latest last."""
        with self._lock:
            return [answer for answer, _ in self._answers.values()]
