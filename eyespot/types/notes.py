"""Notes for the user that code may recognise: a sentence with a code next to it."""

from __future__ import annotations

from collections.abc import Iterable


class Note(str):
    """A sentence for the user; `code` says what it is about, so that no code reads the sentence."""

    code: str

    def __new__(cls, code: str, text: str) -> Note:
        """The sentence under its code."""
        note = super().__new__(cls, text)
        note.code = code
        return note


def codes_of(notes: Iterable[str]) -> list[str]:
    """The codes of those notes that have one, each once, for programs."""
    return list(dict.fromkeys(note.code for note in notes if isinstance(note, Note)))


def prefixed(name: str, note: str) -> str:
    """A note as "NAME: note", with the code that it has."""
    text = f"{name}: {note}"
    return Note(note.code, text) if isinstance(note, Note) else text


def without_code(notes: list[str], code: str) -> list[str]:
    """The notes but those of a code."""
    return [note for note in notes if not (isinstance(note, Note) and note.code == code)]
