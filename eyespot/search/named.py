"""Names in other languages and synonyms: a query by one name is one by all of them, where the gallery was given names.

"garza" finds photos that bear "heron" or "Ardeidae", and, since a heron belongs to the Ardeidae, those that bear "Ardea
cocoi". Its look is searched by the name that the encoder knows best: the one whose nearest photo is nearest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from eyespot.gallery.taxonomy.name_index import NamedTaxon
from eyespot.gallery.taxonomy.name_tables import folded, forms, name_words
from eyespot.gallery.word_index import QueryWord, WordIndex, words_of
from eyespot.search.word_matches import STOP_WORDS, label_words
from eyespot.types import Encoder, Note, Query, Vectors, quantity

MOST = 8  # names that the encoder reads
SHOWN = 3  # names of a sentence
_ENDS = ",.;:!?"  # signs at the end of a word that are not part of a name


@dataclass(frozen=True)
class NamedPhrase:
    """A name in a query, as written: its meanings, and the names that stand beside photos for them."""

    phrase: str
    taxa: list[NamedTaxon]
    borne: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The name and its equals, each once: the first of each meaning, then the second."""
        each = zip_longest(*(taxon.names for taxon in self.taxa))
        names = {folded(name): name for name in chain([self.phrase], *each) if name}
        own = {folded(self.phrase): self.phrase}
        return list((own | {form: name for form, name in names.items() if form not in own}).values())

    @property
    def sentence(self) -> str:
        """What the user should know."""
        files = ", ".join(dict.fromkeys(taxon.file for taxon in self.taxa))
        if len(self.meanings) > 1:
            shown = [*self.meanings[:SHOWN], *(["…"] if len(self.meanings) > SHOWN else [])]
            text = f"{self.phrase} may be any of {len(self.meanings)}, and all are searched: {', '.join(shown)}"
        else:
            text = " = ".join(self.names[: SHOWN + 1])
        known = {form for name in self.names for form in forms(name_words(name))}
        below = sum(name not in known for name in self.borne)
        more = f"; {quantity(below, 'name')} of what belongs to it count{'s' * (below == 1)} too" if below else ""
        return f"{text}, by {files}{more}"

    @property
    def meanings(self) -> list[str]:
        """The first name of each meaning, by the file that knows most; several files may speak of the same."""
        by_file: dict[str, list[NamedTaxon]] = {}
        for taxon in self.taxa:
            by_file.setdefault(taxon.file, []).append(taxon)
        return max((_meanings(self.phrase, taxa) for taxa in by_file.values()), key=len, default=[])


@dataclass(frozen=True)
class NameReader:
    """Reads a query's texts with the names that a gallery was given."""

    words: WordIndex
    _known: dict[str, list[NamedPhrase]] = field(default_factory=dict, compare=False)

    def read(self, text: str) -> list[QueryWord]:
        """The words of a text by which labels are found, each with the names that may stand in its place."""
        places = {word: found.borne for found in self.phrases(text) for word in label_words(found.phrase)}
        return [QueryWord(word, places.get(word, ())) for word in label_words(text)]

    def phrases(self, text: str) -> list[NamedPhrase]:
        """The known names in a text, the longest first from the left; function words begin and end none."""
        if text in self._known:
            return self._known[text]
        names = self.words.names
        found: list[NamedPhrase] = []
        words = text.split()
        at = 0
        while names is not None and at < len(words):
            length = 0 if _says_nothing(words[at]) else names.longest(words[at:])
            if length and not _says_nothing(words[at + length - 1]):
                phrase = " ".join(words[at : at + length]).strip(f" {_ENDS}")
                taxa = names.taxa(phrase)
                found.append(NamedPhrase(phrase, taxa, tuple(self.words.borne([taxon.id for taxon in taxa]))))
            at += max(1, length)
        self._known[text] = [one for one in found if len(one.names) > 1 or one.borne]
        return self._known[text]

    def reworded(self, query: Query, encoder: Encoder, sample: Vectors) -> Query:
        """The query with each name in the form that the encoder knows best, by a sample of the gallery (m, dim)."""
        terms = []
        for term in query.terms:
            text = term.text or ""
            for found in {found.phrase.lower(): found for found in self.phrases(text)}.values():
                texts = list(dict.fromkeys(_replaced(text, found.phrase, name) for name in found.names[:MOST]))
                if len(texts) > 1 and len(sample):
                    text = texts[int((encoder.encode_texts(texts) @ sample.T).max(axis=1).argmax())]
            terms.append(term if term.text is None else replace(term, text=text))
        return replace(query, terms=tuple(terms))

    def of(self, query: Query) -> dict[str, NamedPhrase]:
        """The names in a query, by the words that name them."""
        texts = [term.text for term in query.terms if term.text is not None]
        return {found.phrase: found for text in texts for found in self.phrases(text)}


def _replaced(text: str, phrase: str, name: str) -> str:
    """The text with a name in place of a phrase, in any case, where whole words are the phrase."""
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.sub(rf"(?<![^\s{_ENDS}]){words}(?![^\s{_ENDS}])", lambda _: name, text, flags=re.IGNORECASE)


def rewording_notes(query: Query, other: Query) -> list[Note]:
    """The words by which looks are compared, where they are other ones."""
    pairs = zip(query.terms, other.terms, strict=True)
    sentence = "by look, {!r} is searched as {!r}, which the encoder knows better"
    return [Note("names", sentence.format(a.text, b.text), query.id) for a, b in pairs if a.text != b.text]


def _meanings(phrase: str, taxa: Sequence[NamedTaxon]) -> list[str]:
    """The first name of each that bears this phrase; those that share a name besides it mean the same."""
    own = set(forms(name_words(phrase)))
    groups: list[tuple[str, set[str]]] = []
    for taxon in taxa:
        names = {folded(name) for name in taxon.names}
        if not names & own:  # another name of a row of one's own led to it
            continue
        touched = [group for group in groups if group[1] & (names - own)]
        first = touched[0][0] if touched else next((name for name in taxon.names if folded(name) not in own), phrase)
        groups = [group for group in groups if group not in touched]
        groups.append((first, (names - own).union(*(others for _, others in touched))))
    return list(dict.fromkeys(first for first, _ in groups))


def _says_nothing(word: str) -> bool:
    parts = words_of(word)
    return all(part in STOP_WORDS or (len(part) < 3 and part.isascii()) for part in parts)
