"""What people read: errors with the way out, notes that code may recognise, and how far work is."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias


class EyespotError(Exception):
    """What went wrong and the way out, in one sentence; the command line prints it and ends with `exit_code`."""

    exit_code = 1


class UsageError(EyespotError):
    """The request itself is wrong: an unknown name, a malformed filter, options that exclude each other."""

    exit_code = 2


@contextmanager
def refusing(takes: str, value: object) -> Iterator[None]:
    """`UsageError`, "TAKES, not VALUE", for what Python itself says of a value of another kind in this block."""
    try:
        yield
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        raise UsageError(f"{takes}, not {kind_text(value)}") from error


def kind_text(value: object) -> str:
    """A value that is not of the kind that is wanted, for a sentence: in few letters, and its kind."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def quantity(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun, as in "1 query" and "1,200 queries"; `plural` where no "s" or "ies" makes it."""
    several = plural or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{count:,} {noun if count == 1 else several}"


class NothingFound(EyespotError):
    """The request was fine and there is nothing to give."""

    exit_code = 4


class Note(str):
    """A sentence for the user; `code`, for programs, says what it is about, `queries` of which ones; none are all."""

    code: str
    queries: tuple[str, ...]

    def __new__(cls, code: str, text: str, *queries: str) -> Note:
        """The sentence under its code."""
        note = super().__new__(cls, text)
        note.code, note.queries = code, queries
        return note


def codes_of(notes: Iterable[str]) -> list[str]:
    """The codes of those notes that have one, each once, for programs."""
    return list(dict.fromkeys(note.code for note in notes if isinstance(note, Note)))


def prefixed(name: str, note: str) -> str:
    """A note as "NAME: note", with the code that it has."""
    text = f"{name}: {note}"
    return Note(note.code, text, *note.queries) if isinstance(note, Note) else text


def without_code(notes: list[str], code: str) -> list[str]:
    """The notes but those of a code."""
    return [note for note in notes if not (isinstance(note, Note) and note.code == code)]


Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0: unknown)."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""
