"""The lists of a JSON object, one element at a time: a file of gigabytes is never in memory as a whole.

Python's own decoder reads each element; this module finds where elements begin. ijson refuses NaN and Infinity, which
Python writes into such files, replaces half a character (`\\ud800`) by "?" without a word, and takes longer.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

LONGEST = 1 << 24  # characters of one element; more is a file that lost a bracket
_PIECE = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_value: Any = json.JSONDecoder().raw_decode


def lists_of(place: Path) -> Iterator[tuple[str, Iterator[Any] | None]]:
    """Each key of the file's object with the elements of its list, or None where it holds something else.

    What the caller leaves of a list is skipped. ValueError for what is not a JSON object, OSError as `open` raises it.
    """
    for key, part in _members(place):
        yield key, part if isinstance(part, Iterator) else None


def elements_of(place: Path) -> Iterator[Any]:
    """The elements of a file that is one list. ValueError for what is none, OSError as `open` raises it."""
    with _opened(place, "[", "list") as text:
        yield from text.elements()


def values_of(place: Path, names: Collection[str]) -> dict[str, Any]:
    """The values of these keys of the file's object, where they are not lists. Errors as above."""
    return {key: part for key, part in _members(place) if key in names and not isinstance(part, Iterator)}


def _members(place: Path) -> Iterator[tuple[str, Any]]:
    """Each key of the file's object with its value, or with the elements of its list; what is left is skipped."""
    with _opened(place, "{", "object") as text:
        for key in text.members():
            if text.next() == "[":
                elements = text.elements()
                yield key, elements
                deque(elements, maxlen=0)
            else:
                yield key, text.value()


@contextmanager
def _opened(place: Path, opening: str, what: str) -> Iterator[_Text]:
    """A file that holds one value and begins so; what is left after it is an error."""
    opener = gzip.open if place.suffix.lower() == ".gz" else open
    with opener(place, "rt", encoding="utf-8-sig") as file:
        text = _Text(file)
        if text.next() != opening:
            raise ValueError(f"no JSON {what}")
        yield text
        if text.next():
            raise text.broken()


class _Text:
    """A text that is read a piece at a time, from `index` of the buffer on; `before` counts what the buffer dropped."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.buffer, self.index, self.before = file, "", 0, 0

    def next(self) -> str:
        """The character that comes after white space, or nothing at the end."""
        while True:
            space = _SPACE.match(self.buffer, self.index)
            self.index = space.end() if space else self.index
            if self.index < len(self.buffer) or not self._read_on():
                return self.buffer[self.index : self.index + 1]

    def take(self, character: str) -> None:
        """Go past a character that must come now."""
        if self.next() != character:
            raise self.broken()
        self.index += 1

    def members(self) -> Iterator[str]:
        """The keys of the object that comes now; the caller reads each value before the next key."""
        for _ in self._parts("{", "}"):
            if self.next() != '"':
                raise self.broken()
            key: str = self.value()
            self.take(":")
            yield key

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes now."""
        for _ in self._parts("[", "]"):
            yield self.value()

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        """A stop before each part of the list or object that comes now; the caller reads the part."""
        self.take(opening)
        going = self.next() != closing
        while going:
            yield
            going = self.next() != closing
            if going:
                self.take(",")
        self.take(closing)

    def value(self) -> Any:
        """The value that comes now."""
        self.next()
        while True:
            try:
                value, end = _value(self.buffer, self.index)
            except json.JSONDecodeError:
                if len(self.buffer) - self.index > LONGEST or not self._read_on():
                    raise self.broken() from None
                continue
            except RecursionError:
                raise ValueError("nested too deeply") from None
            # A number at the end of what was read may go on: after "1", "1." or "1e+" too.
            if end + 2 < len(self.buffer) or not self._read_on():
                self.index = end
                return value

    def _read_on(self) -> bool:
        """Read as much again, so that a long value is not decoded over and over; False at the end of the file."""
        piece = self.file.read(max(_PIECE, len(self.buffer) - self.index))
        if piece:
            self.buffer, self.index, self.before = self.buffer[self.index :] + piece, 0, self.before + self.index
        return bool(piece)

    def broken(self) -> ValueError:
        """The error that says where the text stops being JSON."""
        return ValueError(f"no JSON at character {self.before + self.index + 1} (cut short?)")
