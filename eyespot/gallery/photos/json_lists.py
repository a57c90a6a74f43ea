"""The lists of a JSON object, one element at a time: a file of gigabytes is never in memory as a whole."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

LONGEST = 1 << 24  # characters of one element; more is a file that lost a bracket
_PIECE = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_value: Any = json.JSONDecoder().raw_decode


def lists_of(place: Path) -> Iterator[tuple[str, Iterator[Any] | None]]:
    """Each key of the file's object with the elements of its list, or None where it holds something else.

    What is not taken of a list is read over. Raises ValueError for what is no JSON object, OSError as `open` does.
    """
    with place.open(encoding="utf-8-sig") as file:
        text = _Text(file)
        if text.next() != "{":
            raise ValueError("no JSON object")
        for key in text.members():
            if text.next() == "[":
                elements = text.elements()
                yield key, elements
                deque(elements, maxlen=0)
            else:
                yield key, None
                text.value()
        if text.next():
            raise text.broken()


class _Text:
    """A place in a text that is read a piece at a time."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.held, self.at, self.before = file, "", 0, 0

    def next(self) -> str:
        """The character that comes after white space, or nothing at the end."""
        while True:
            space = _SPACE.match(self.held, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.held) or not self._read_on():
                return self.held[self.at : self.at + 1]

    def take(self, character: str) -> None:
        """Go past a character that must come now."""
        if self.next() != character:
            raise self.broken()
        self.at += 1

    def members(self) -> Iterator[str]:
        """The keys of the object that comes now; whoever asks reads each value before the next key."""
        self.take("{")
        going = not self._ends("}")
        while going:
            if self.next() != '"':
                raise self.broken()
            key: str = self.value()
            self.take(":")
            yield key
            going = self._goes_on("}")

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes now."""
        self.take("[")
        going = not self._ends("]")
        while going:
            yield self.value()
            going = self._goes_on("]")

    def _ends(self, closing: str) -> bool:
        ends = self.next() == closing
        self.at += ends
        return ends

    def _goes_on(self, closing: str) -> bool:
        """Past the comma or the end that must come after an element."""
        if self._ends(closing):
            return False
        self.take(",")
        return True

    def value(self) -> Any:
        """The value that comes now."""
        self.next()
        while True:
            try:
                found, end = _value(self.held, self.at)
            except json.JSONDecodeError:
                if len(self.held) - self.at > LONGEST or not self._read_on():
                    raise self.broken() from None
                continue
            except RecursionError:
                raise ValueError("nested too deeply") from None
            # A number at the end of what was read may go on: after "1", "1." or "1e+" too.
            if end + 2 < len(self.held) or not self._read_on():
                self.at = end
                return found

    def _read_on(self) -> bool:
        """Hold as much again, so that a long value is not decoded over and over; False at the end of the file."""
        piece = self.file.read(max(_PIECE, len(self.held) - self.at))
        if piece:
            self.held, self.at, self.before = self.held[self.at :] + piece, 0, self.before + self.at
        return bool(piece)

    def broken(self) -> ValueError:
        """The error that says where the text stops being JSON."""
        return ValueError(f"no JSON at character {self.before + self.at + 1} (cut short?)")
