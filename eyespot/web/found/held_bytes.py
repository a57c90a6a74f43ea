"""How much memory the results of late hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from numpy.typing import NDArray


class HeldBytes:
    """How many bytes all results hold; an array that several share counts once."""

    def __init__(self) -> None:
        self.held = 0
        self._entries: dict[str, tuple[int, list[NDArray[Any]]]] = {}  # arrays stay here, lest another get its number
        self._holders: Counter[int] = Counter()

    def enter(self, name: str, plain: int, arrays: list[NDArray[Any]]) -> None:
        """A result with what it holds beside arrays, in place of what was entered for it before."""
        self.strike(name)
        self._entries[name] = plain, arrays
        self.held += plain
        for array in arrays:
            self.held += 0 if self._holders[id(array)] else array.nbytes
            self._holders[id(array)] += 1

    def strike(self, name: str) -> None:
        """A result that is not kept any more, if it is known."""
        plain, arrays = self._entries.pop(name, (0, []))
        self.held -= plain
        for array in arrays:
            self._holders[id(array)] -= 1
            if not self._holders[id(array)]:
                del self._holders[id(array)]
                self.held -= array.nbytes
