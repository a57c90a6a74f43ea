"""What the built-in encoder says of a text: that it is probably not English, and which score is a probable match."""

from __future__ import annotations

from eyespot.encoders._caveats import mostly_other_script
from eyespot.encoders.starter.networks import Floats
from eyespot.encoders.starter.words import FUNCTION_WORDS, Lexicon, is_known, listed, plain_words

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
