"""What a model of pictures and words says of a text that it does not understand, see, or read to its end."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

COUNT_WORDS = "two three four five six seven eight nine ten eleven twelve dozen dozens several many few pair couple"
COUNTS = frozenset(COUNT_WORDS.split())
NEGATION = re.compile(r"\b(without|except|not|no|never|neither|nor|none|nobody|nothing|\w+n['\u2019]t)\b(?!-)", re.I)
WITHOUT = re.compile(
    r"(.+?)[\s,]+(?:but |with |and |(?:that |who )(?:is |are ))?(?:without|except|not|no) (?:any |an? |the |for )?(.+)",
    re.I,
)
SHOWN = 30  # characters of the end of what is read


def mostly_other_script(text: str) -> bool:
    """Whether more than half of the letters are not Latin."""
    letters = [c for c in text if c.isalpha()]
    return sum("LATIN" not in unicodedata.name(c, "") for c in letters) * 2 > len(letters)


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, accents taken off."""
    letters = unicodedata.normalize("NFKD", text.lower().replace("\u2019", "'"))
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return [word.strip("'") for word in re.findall(r"[a-z']*[a-z][a-z']*", bare)]


def joined(*caveats: str | None) -> str | None:
    """Several caveats as one sentence; None if there is none."""
    return "; ".join(filter(None, caveats)) or None


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


def counts_in(text: str) -> list[str]:
    """The words and small numbers that count things: "two", "3" before a plural."""
    numbers = re.findall(r"\b([2-9]|1[0-9])\s+[a-z]+s\b", text.lower())
    return list(dict.fromkeys([*(word for word in plain_words(text) if word in COUNTS), *numbers]))


def negated(name: str, text: str) -> str | None:
    """The caveat of models for which "no" changes little (NegBench, Alhamoud et al. 2025), with a minus instead."""
    found = NEGATION.search(text)
    if found is None:
        return None
    parts = WITHOUT.fullmatch(text.strip())
    way_out = f"{parts[1]} - {parts[2]}" if parts else "dogs - people"
    return f'{name} reads past "{found[0]}"; write what is to be left out behind a minus, as in: {way_out}'


def of_contrastive(name: str, text: str) -> str | None:
    """The caveats of models that were trained to tell pairs of pictures and captions apart, as CLIP was.

    They do not count in pictures (CountBench, Paiss et al. 2023).
    """
    counts = ", ".join(counts_in(text))
    uncounted = f"{name} hardly counts, so other numbers than {counts} are found as well" if counts else None
    return joined(uncounted, negated(name, text))


def cut_text(name: str, read: int, total: int, end: str) -> str | None:
    """What a model says of a text that is longer than it reads; None for one that it reads whole."""
    ends = f"it ends at \u2018\u2026{end.strip()[-SHOWN:]}\u2019"
    return f"{name} reads {read} of {total} tokens; {ends}" if total > read else None


def cut_by(name: str, tokenizer: Any, text: str) -> str | None:
    """The same by a tokenizer of the library `tokenizers` that cuts texts."""
    found = tokenizer.encode(text)
    special = sum(found.special_tokens_mask) - found.attention_mask.count(0)
    read = sum(found.attention_mask)
    total = sum(piece.special_tokens_mask.count(0) for piece in [found, *found.overflowing]) + special
    ends = [end for (_, end), other in zip(found.offsets, found.special_tokens_mask, strict=True) if not other]
    return cut_text(name, read, total, text[: max(ends, default=0)])
