"""The English words the built-in encoder knows, which of them name something a photo can show, and its caveats."""

from __future__ import annotations

import mmap
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from eyespot.encoders._caveats import mostly_other_script
from eyespot.encoders.starter.networks import Floats

LONGEST_PHRASE = 3  # words of a noun phrase: "great grey owl"
ENDINGS = (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""), ("men", "man"))
VERB_ENDINGS = (("ied", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("er", ""), ("er", "e"), ("est", ""))
MORE_ENDINGS = (("'s", ""), ("iest", "y"), ("ier", "y"), ("ly", ""), ("ness", ""), ("less", ""), ("like", ""))


def listed(words: str) -> frozenset[str]:
    """Words between blanks as a set."""
    return frozenset(words.split())


FUNCTION_WORDS = listed(
    """a about above across after again against all along also am an and another any are around as at be because been
    before behind being below beneath beside between both but by can could did do does doing down during each either
    every few for from had has have having he her here hers him his how i if in into is it its itself just least less
    let many may me might mine more most much must my near neither no nobody none nor not of off on once one only onto
    or other others our ours out over own per same several shall she should since so some someone something such than
    that the their theirs them themselves then there these they this those through to together too toward towards two
    under until up upon us very via was we were what when where whether which while who whom whose why will with
    within without would yet you your yours three four five six seven eight nine ten"""
)
# Words that are everyday in another language and hardly stand in an English sentence.
FOREIGN_WORDS = listed(
    """der das und am ein eine einen einem einer eines mit auf im ist von zu zum zur fur nicht auch dem den des ich wir
    sind bei aus nach uber unter vor wie sie le les la un une du de et est dans avec sur pour qui que aux sont au ce
    cette ces il elle nous vous el los las del una unos unas con por para y en es su sus se muy como esta este estan
    mas pero lo al gli della dello degli delle dei nel nella di che sono uno questo questa het een van op met voor
    zijn niet bij naar aan os da dos um uma em na nos nas com nao mais och ett av som pa til og det er jest nie"""
)
MENTIONED = 5  # unknown words
# Calibrated on real photos, docs/starter.md.
LEAST_SHARE = 0.57  # of what an ideal picture of the fittest class would score
LEAST_LEAD = 2.7  # standard deviations above what ideal pictures of all classes score
ARTICLE = r"((an?|the|some)\s+)?"
FRAME = re.compile(rf"\s*{ARTICLE}((photo(graph)?|picture|image)s?\s+(of|with|showing)\s+{ARTICLE})?", re.I)


class Lexicon:
    """words.txt, sorted lines of a word and its concepts, searched where it lies without reading it whole."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self.text = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def concepts(self, entry: str) -> list[int] | None:
        """The concepts a noun or noun phrase stands for, none if it is no visible thing; None if it is not known."""
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


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, accents taken off."""
    letters = unicodedata.normalize("NFKD", text.lower().replace("\u2019", "'"))
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return [word.strip("'") for word in re.findall(r"[a-z']*[a-z][a-z']*", bare)]


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


def is_known(word: str, lexicon: Lexicon) -> bool:
    """Whether a word or what it is a form of is English."""
    forms = (word, *without(word, ENDINGS + VERB_ENDINGS + MORE_ENDINGS))
    doubled = (form[:-1] for form in forms if len(form) > 3 and form[-1] == form[-2])  # running → runn → run
    return word in FUNCTION_WORDS or any(lexicon.concepts(form) is not None for form in (*forms, *doubled))


def without(word: str, endings: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The word with each ending that it has replaced."""
    for ending, instead in endings:
        if word.endswith(ending) and not word.endswith("ss") and len(word) > len(ending) + 1:
            yield word[: -len(ending)] + instead


# -- caveats ------------------------------------------------------------------------------------------------


def caveat(text: str, lexicon: Lexicon) -> str | None:
    """One sentence for a text in another script or language, or mostly of unknown words; None for English."""
    if mostly_other_script(text):
        return "starter reads English only, and this text is in another script: please say it in English"
    words = plain_words(text)
    foreign = [word for word in words if word in FOREIGN_WORDS]
    unknown = [word for word in words if len(word) > 1 and word not in foreign and not is_known(word, lexicon)]
    strange = len(foreign) + len(unknown)
    if foreign and is_other_language(words, len(foreign), strange):
        return "starter reads English only, and this text seems to be in another language: please say it in English"
    if strange * 2 > len(words):
        return f"starter reads English; it may not know: {', '.join(dict.fromkeys([*unknown, *foreign][:MENTIONED]))}"
    return None


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
    share = LEAST_SHARE * ideal_scores.max()
    lead = ideal_scores.mean() + LEAST_LEAD * ideal_scores.std()
    return float(max(share, lead))
