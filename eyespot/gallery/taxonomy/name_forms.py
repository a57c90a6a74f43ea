"""How names are compared: without case, accents and signs, in singular or plural, and each name of a list alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LONGEST = 5  # words of a name that is looked up
# "Herons, Egrets, and Bitterns" are three names; "and allies" names nothing
_AND = re.compile(r"\s+(?:and|y|e|et|und|en|i|&)\s+", re.I)
_ALLIES = re.compile(
    r"(?:and|y|e|et|und|en|&)?\s*(?:their |sus )?"
    r"(?:allies|relatives|kin|afines|parientes|aliados|apparentés|verwandte)",
    re.I,
)


def name_words(text: str) -> list[str]:
    """The words of a name in order, in lower case without accents: letters and digits, as in the table of words."""
    letters = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if unicodedata.category(c)[0] != "M")
    return "".join(c if unicodedata.category(c)[0] in "LN" else " " for c in letters).split()


def folded(text: str) -> str:
    """A name as it is compared."""
    return " ".join(name_words(text))


def forms(words: Sequence[str]) -> list[str]:
    """A name of these words, and the same with its last word in the plural or the singular of English and Spanish."""
    *first, last = words
    lasts = [last]
    if len(last) > 2 and last.isalpha():
        lasts += [f"{last}s", f"{last}es"]
    if len(last) > 3 and last.endswith("s") and not last.endswith("ss"):
        lasts += [last[:-1], *([last[:-2]] if last.endswith("es") else [])]
    return [" ".join([*first, form]) for form in lasts]


def single_names(name: str) -> list[str]:
    """The name itself, and each part of it where it lists several, as names of families do."""
    name = " ".join(name.split())
    if "," not in name:
        return [name]
    head, _, tail = name.rpartition(",")
    listed = f"{head},{_AND.sub(',', f' {tail} ')}"
    parts = (_ALLIES.sub("", part).strip() for part in listed.split(","))
    return list(dict.fromkeys([name, *filter(None, parts)]))
