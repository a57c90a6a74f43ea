"""Short texts on signs, in Chinese and in English: both of a pair mean the same."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import NamedTuple

from eyespot.storage.tables import rows_of
from eyespot.types import UsageError

UNITS = {"menu": ("元", "yuan", (2, 60)), "direction": ("米", "m", (50, 900))}  # kinds that may have a number


class Phrase(NamedTuple):
    """A text in both languages, and its kind of sign."""

    chinese: str
    english: str
    kind: str


PHRASES = tuple(Phrase(**row) for _, row in rows_of(Path(__file__).with_name("phrases.csv")))


def invent(chance: Random) -> Phrase:
    """One of the texts; what is for sale may have a price, a direction a distance."""
    phrase = chance.choice(PHRASES)
    if phrase.kind not in UNITS or chance.random() < 0.3:
        return phrase
    chinese, english, bounds = UNITS[phrase.kind]
    number = chance.randint(*bounds) // 5 * 5 if phrase.kind == "direction" else chance.randint(*bounds)
    return Phrase(f"{phrase.chinese} {number}{chinese}", f"{phrase.english} {number} {english}", phrase.kind)


def translated(text: str) -> str:
    """The text in the other language, with its number and unit; `UsageError` for a text that is not in the list."""
    match = re.fullmatch(r"(.*?)(?: (\d+) ?(元|米|yuan|m))?", text)
    assert match is not None
    words, number, unit = match.groups()
    phrase = next((phrase for phrase in PHRASES if words in phrase[:2]), None)
    if phrase is None:
        raise UsageError(f"no translation of {text!r} is known; add it to phrases.csv")
    language = int(words == phrase.chinese)
    if unit is None:
        return phrase[language]
    units = next(names for names in UNITS.values() if unit in names[:2])
    return f"{phrase[language]} {number}{' ' if language else ''}{units[language]}"
