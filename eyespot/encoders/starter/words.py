"""The English words the built-in encoder knows, which of them name something a photo can show, and its caveats."""

from __future__ import annotations

import mmap
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from textwrap import shorten

from eyespot.encoders._text_caveats import counts_in, joined, mostly_other_script, negated, plain_words
from eyespot.encoders.starter.networks import Floats

LONGEST_PHRASE = 3  # words of a noun phrase: "great grey owl"
ENDINGS = (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""), ("men", "man"))
VERB_ENDINGS = (("ied", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("er", ""), ("er", "e"), ("est", ""))
MORE_ENDINGS = (("'s", ""), ("iest", "y"), ("ier", "y"), ("ly", ""), ("ness", ""), ("less", ""), ("like", ""))

LISTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
FUNCTION_WORDS, FOREIGN_WORDS = (frozenset(LISTS[name].split()) for name in ("function", "foreign"))
CLASSES = [int(number) for number in LISTS["class_concepts"].split()]
UNSEEN = {kind: frozenset(words.split()) for kind, words in LISTS["unseen"].items()}
PERSON = [5]  # the concept of all words that mean people and nothing else
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MENTIONED = 5  # unknown words
# Calibrated on real photos, docs/how/starter.md.
LEAST_SHARE, CLEAR_SHARE = 0.57, 0.63  # of what an ideal picture of the fittest class would score; if that is `CLEAR`
ROUGH, CLEAR = 0.36, 0.42  # what it scores with a text that names no class well, and one that does
LEAST_LEAD = 2.7  # standard deviations above what ideal pictures of all classes score
ARTICLE = r"((an?|the|some)\s+)?"
FRAME = re.compile(rf"\s*{ARTICLE}((photo(graph)?|picture|image)s?\s+(of|with|showing)\s+{ARTICLE})?", re.I)


class Lexicon:
    """words.txt, sorted lines of a word and its concepts, searched where it lies without reading it whole."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self.text = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self.concepts = lru_cache(4096)(self._concepts)  # a query is read for its vector, looks and caveats

    def _concepts(self, entry: str) -> list[int] | None:
        """The concepts a noun or noun phrase stands for, none if it is not a visible thing; None if it is not known."""
        wanted, low, high = entry.encode(), 0, len(self.text)
        while low < high:
            start = self.text.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self.text.find(b"\n", start)
            word, _, concepts = self.text[start:end].partition(b"\t")
            if word == wanted:
                return [int(number) for number in concepts.split()]
            low, high = (end + 1, high) if word < wanted else (low, start)
        return None


def unframed(text: str) -> str:
    """What a text asks for, without "a photo of a" or an article before it and without a full stop."""
    return FRAME.sub("", text, count=1).strip().rstrip(".") or text


def framed(text: str) -> str:
    """The sentence that is read for a text: "penguin", "a penguin" and "a picture of a penguin" are one."""
    return f"a photo of a {unframed(text)}"


def visible_nouns(text: str, lexicon: Lexicon) -> list[list[int]]:
    """The concepts of each noun of a text that names a visible thing, longest phrases first."""
    words, nouns, start = plain_words(text), [], 0
    while start < len(words):
        length, concepts = longest_noun(words[start : start + LONGEST_PHRASE], lexicon)
        nouns += [concepts] if concepts else []
        start += length
    return nouns


def longest_noun(words: list[str], lexicon: Lexicon) -> tuple[int, list[int]]:
    """How many words the noun at the start takes, and its concepts; (1, []) if there is none."""
    if words[0] in FUNCTION_WORDS:
        return 1, []
    for length in range(len(words), 0, -1):
        phrase = " ".join(words[:length])
        for entry in (phrase, *without(phrase, ENDINGS)):  # the phrase itself, then what it may be the plural of
            if concepts := lexicon.concepts(entry):
                return length, concepts
    return 1, []


def forms_of(word: str) -> set[str]:
    """A word, and what it may be a form of."""
    forms = {word, *without(word, ENDINGS + VERB_ENDINGS + MORE_ENDINGS)}
    return forms | {form[:-1] for form in forms if len(form) > 3 and form[-1] == form[-2]}  # running → runn → run


def is_known(word: str, lexicon: Lexicon) -> bool:
    """Whether a word or what it is a form of is English."""
    return word in FUNCTION_WORDS or any(lexicon.concepts(form) is not None for form in forms_of(word))


def without(word: str, endings: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The word with each ending that it has replaced."""
    for ending, instead in endings:
        if word.endswith(ending) and not word.endswith("ss") and len(word) > len(ending) + 1:
            yield word[: -len(ending)] + instead


# -- caveats ------------------------------------------------------------------------------------------------


def caveat(text: str, lexicon: Lexicon, ideal_scores: Callable[[str], Floats]) -> str | None:
    """One sentence for a text in another script or language, of unknown words, or of what no class shows."""
    if mostly_other_script(text):
        return "starter reads English only, and this text is in another script: please say it in English"
    words = plain_words(text)
    foreign = [word for word in words if word in FOREIGN_WORDS]
    unknown = [word for word in words if len(word) > 1 and word not in foreign and not is_known(word, lexicon)]
    strange = len(foreign) + len(unknown)
    if foreign and is_other_language(words, len(foreign), strange):
        return "starter reads English only, and this text seems to be in another language: please say it in English"
    meant = {word: near for word in dict.fromkeys(unknown) if (near := respelled(word, lexicon))}
    listed = [*dict.fromkeys(unknown), *foreign] if strange * 2 > len(words) else list(meant)
    shown = (f"{word} (did you mean {meant[word]}?)" if word in meant else word for word in listed[:MENTIONED])
    strangers = f"starter reads English; it may not know: {', '.join(shown)}" if listed else None
    if said := joined(strangers, unseen(text, lexicon, bool(listed)), negated("starter", text)):
        return said
    thing = unframed(text)  # that no class shows, nor any is much like
    alone = len(plain_words(thing)) <= LONGEST_PHRASE and len(visible_nouns(thing, lexicon)) == 1
    if not alone or ideal_scores(text).max() >= ROUGH:
        return None
    return f"starter knows {thing} only by things that are a little like it, so the hits may show none"


def unseen(text: str, lexicon: Lexicon, named: bool) -> str | None:
    """What a text asks for that no class shows, by kinds. named: its unknown words are named already."""
    found = {"counts": counts_in(text), "emoji": [letter for letter in text if unicodedata.category(letter) == "So"]}
    words, start = plain_words(text), 0
    alone = len([word for word in words if word not in FUNCTION_WORDS]) == 1
    while start < len(words):
        length, concepts = longest_noun(words[start : start + LONGEST_PHRASE], lexicon)
        kind = unseen_kind(words[start], lexicon) if length == 1 else None  # a black bear is not a colour
        if kind and not (alone and concepts and kind in ("colours", "actions")):  # an orange, a fly
            found.setdefault(kind, []).append(words[start])
        start += length
    kinds = [f"{kind} ({', '.join(dict.fromkeys(words))})" for kind, words in found.items() if words]
    if kinds:
        return f"starter finds things and animals; it hardly sees {', '.join(kinds)}"
    known = named or visible_nouns(text, lexicon)
    text = shorten(text, 60, placeholder=" …")
    return None if known else f'starter finds things and animals, and no word of "{text}" names one that it can see'


def unseen_kind(word: str, lexicon: Lexicon) -> str | None:
    """The kind of what no class shows that a word asks for, if any."""
    nouns, forms = {word, *without(word, ENDINGS)}, forms_of(word)
    for kind, listed in UNSEEN.items():
        if listed & (forms if kind == "actions" else nouns):
            return str(kind)
    concepts = lexicon.concepts(word)
    if len(word) > 4 and word.endswith("ing") and not concepts and word not in FUNCTION_WORDS:
        return "actions" if is_known(word, lexicon) else None
    return "people" if concepts == PERSON and word.endswith(("er", "ist", "man", "woman")) else None


def respelled(word: str, lexicon: Lexicon) -> str | None:
    """The name of a visible thing that is one slip away: two letters swapped, or one left out, added or mistaken.

    As in Norvig's spelling corrector (2007), in this order and without frequencies; the first letter is taken as right.
    """
    if len(word) < 5:  # of which most are near to some other word
        return None
    parts = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    slips = [left + right[1] + right[0] + right[2:] for left, right in parts if len(right) > 1]
    slips += [left + letter + right for left, right in parts for letter in LETTERS]
    slips += [left + right[1:] for left, right in parts if right]
    slips += [left + letter + right[1:] for left, right in parts if right for letter in LETTERS]
    return next((slip for slip in slips if any(map(lexicon.concepts, (slip, *without(slip, (("s", ""),)))))), None)


def is_other_language(words: list[str], foreign: int, strange: int) -> bool:
    """Whether the little words are another language's: one beside mostly unknown words, or two and half unknown."""
    english = sum(word in FUNCTION_WORDS and word not in FOREIGN_WORDS for word in words)
    most = 2 * strange > len(words) > 1
    return foreign > english and (most or (foreign > 1 and 2 * strange == len(words)))


def weakest_match(ideal_scores: Floats) -> float:
    """The lowest score of a probable match, from what a text scores with an ideal picture of every class.

    A noun that is a class, or kin to one, shows by the share that its pictures are missing; a long text, which no class
    fits well, by the small lead of the best picture over any other.
    """
    share = (CLEAR_SHARE if ideal_scores.max() >= CLEAR else LEAST_SHARE) * ideal_scores.max()
    lead = ideal_scores.mean() + LEAST_LEAD * ideal_scores.std()
    return float(max(share, lead))
