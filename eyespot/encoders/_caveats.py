"""When an encoder probably does not understand a text: what it says then."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def mostly_other_script(text: str) -> bool:
    """Whether more than half of the letters are not Latin."""
    letters = [c for c in text if c.isalpha()]
    return sum("LATIN" not in unicodedata.name(c, "") for c in letters) * 2 > len(letters)


def latin_only(name: str, text: str) -> str | None:
    """The caveat of a model trained on English captions."""
    if not mostly_other_script(text):
        return None
    return f"{name} was trained on English captions and probably does not understand this script; try it in English"


def mostly_unknown(name: str, ids: Sequence[int], unknown: int | None) -> str | None:
    """The caveat of a text that the vocabulary does not cover."""
    if unknown is None or sum(i == unknown for i in ids) * 2 <= len(ids):
        return None
    return f"{name} does not know most of these characters; try other words or another script"
