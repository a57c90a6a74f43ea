"""The names that stand beside the photos of a gallery, among all that it was given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from eyespot.gallery.taxonomy.name_tables import LONGEST, forms, name_words

MOST_TAXA = 200  # of one name
REMEMBERED = 100_000  # runs of words that name nothing


class BorneNames:
    """Collects the names that stand in texts, and says under which taxa they belong.

    Only names are remembered, and never texts: most words of a gallery, such as the numbers of its files, name nothing.
    """

    def __init__(self, table: sqlite3.Connection) -> None:
        self.table = table
        self._phrases: dict[str, list[int]] = {}
        first = "SELECT DISTINCT substr(folded, 1, instr(folded || ' ', ' ') - 1), instr(folded, ' ') > 0 FROM names"
        starts = table.execute(first).fetchall()
        self._whole = {word for word, goes_on in starts if not goes_on}  # names of one word
        self._opens = {word for word, goes_on in starts if goes_on}  # first words of the others
        self._parents: dict[int, int | None] = {}
        self._nothing: set[str] = set()  # the runs of words last seen that name nothing

    def read(self, text: str) -> None:
        """Look up each run of words of a text that may be a name."""
        words = name_words(text)
        for at, word in enumerate(words):
            if word in self._opens:
                for end in range(at + 1, min(at + LONGEST, len(words)) + 1):
                    self._look_up(words[at:end])
            elif not self._whole.isdisjoint(forms([word])):
                self._look_up([word])

    def _look_up(self, words: Sequence[str]) -> None:
        phrase = " ".join(words)
        if phrase in self._phrases or phrase in self._nothing or (len(phrase) <= 2 and phrase.isascii()):
            return
        names = forms(words)
        question = f"SELECT DISTINCT taxon FROM names WHERE folded IN ({marks(names)}) LIMIT {MOST_TAXA}"
        if taxa := [taxon for (taxon,) in self.table.execute(question, names)]:
            self._phrases[phrase] = taxa
            return
        if len(self._nothing) >= REMEMBERED:
            self._nothing.clear()
        self._nothing.add(phrase)

    def rows(self) -> Iterator[tuple[int, str]]:
        """Each taxon with a name that stands for it, or for what belongs to it, in a text read since the last call."""
        phrases, self._phrases = self._phrases, {}
        for phrase, taxa in phrases.items():
            for taxon in dict.fromkeys(above for one in taxa for above in self._above(one)):
                yield taxon, phrase

    def _above(self, taxon: int) -> list[int]:
        """The taxon and all that it belongs to."""
        line: list[int] = []
        here: int | None = taxon
        while here is not None and here not in line:
            line.append(here)
            if here not in self._parents:
                row = self.table.execute("SELECT parent FROM taxa WHERE id = ?", (here,)).fetchone()
                self._parents[here] = row and row[0]
            here = self._parents[here]
        return line


def marks(values: Sequence[object]) -> str:
    """A question mark for each value of a question."""
    return ", ".join("?" * len(values))
