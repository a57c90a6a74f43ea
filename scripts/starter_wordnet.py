"""WordNet as the built-in encoder uses it: the nouns of visible things, and their kinship with ImageNet's classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

VISIBLE = {5, 6, 8, 13, 14, 15, 17, 18, 19, 20, 25, 27}  # lexicographer files: animal, artifact, body, food, ...
PERSON = 18
SENSES = 2  # the first visible meanings of a word; later ones are rare
SHARPNESS = 8  # the power that turns shared information into nearness: near relatives count, distant ones hardly
LEAST = 0.3  # a concept sharing less information than this with every class says nothing about a picture


@dataclass
class WordNet:
    """The noun hierarchy, and the single words of all parts of speech."""

    folder: Path
    classes: list[str]  # the 1000 classes of ImageNet as offsets of synsets, in the classifier's order

    @cached_property
    def synsets(self) -> dict[str, tuple[int, list[str], list[str], bool]]:
        """Offset → (lexicographer file, words, offsets of hypernyms, whether it is one thing, not a kind)."""
        return {offset: parts for offset, *parts in map(parsed, lines(self.folder / "data.noun"))}  # type: ignore[misc]

    @cached_property
    def senses(self) -> dict[str, list[str]]:
        """Noun, as spelled in WordNet → offsets, the commonest first."""
        rows = (line.split() for line in lines(self.folder / "index.noun"))
        return {row[0]: row[-int(row[2]) :] for row in rows}

    @cached_property
    def irregular(self) -> dict[str, str]:
        """Irregular plural → singular: geese → goose."""
        rows = (line.split() for line in (self.folder / "noun.exc").read_text().splitlines())
        return {row[0]: row[1] for row in rows}

    @cached_property
    def single_words(self) -> set[str]:
        """Every single word of the lexicon, any part of speech, irregular forms included."""
        files = [f"index.{pos}" for pos in ("noun", "verb", "adj", "adv")] + ["noun.exc", "verb.exc", "adj.exc"]
        entries = (line.split()[0] for file in files for line in lines(self.folder / file))
        return {word for entry in entries for word in spelled(entry).split()}

    @cached_property
    def adjectives(self) -> set[str]:
        return {line.split()[0] for line in lines(self.folder / "index.adj")}

    def is_visible(self, offset: str) -> bool:
        """Whether the synset is a kind of thing a photo can show; single persons (Zane Grey) are not."""
        file, _, _, is_one = self.synsets[offset]
        return file in VISIBLE and not (file == PERSON and is_one)

    def ancestors(self, offset: str) -> set[str]:
        """The synset and everything it is a kind of."""
        found, open_ends = {offset}, [offset]
        while open_ends:
            above = set(self.synsets[open_ends.pop()][2]) - found
            found |= above
            open_ends += above
        return found

    def chain(self, offset: str) -> str:
        """The class, its kind and the kind of that: "king penguin, penguin, sphenisciform seabird"."""
        parents = self.synsets[offset][2][:1]
        line = [offset, *parents, *(above for parent in parents for above in self.synsets[parent][2])]
        return ", ".join(self.synsets[o][1][0].replace("_", " ") for o in line)

    @cached_property
    def class_ancestors(self) -> list[set[str]]:
        return [self.ancestors(c) for c in self.classes]

    @cached_property
    def information(self) -> dict[str, float]:
        """Synset over at least one class → 1 if over one class only, 0 if over all (Resnik's information content)."""
        over = Counter(a for line in self.class_ancestors for a in line)
        return {a: 1 - float(np.log(n) / np.log(len(self.classes))) for a, n in over.items()}

    def shared(self, offset: str) -> np.ndarray:
        """What the synset shares with each class: the information of their most specific common ancestor, (1000,)."""
        own = self.ancestors(offset) & self.information.keys()
        return np.array([max(self.information[a] for a in own & line) for line in self.class_ancestors])

    def attachment(self, offset: str) -> frozenset[str]:
        """The ancestors that some class has too; synsets with the same ones are the same concept to the classifier."""
        return frozenset(self.ancestors(offset) & self.information.keys())


def lines(file: Path) -> Iterator[str]:
    """The lines of a WordNet file without its licence head."""
    return (line for line in file.read_text(encoding="latin1").splitlines() if not line.startswith(" "))


def parsed(line: str) -> tuple[str, int, list[str], list[str], bool]:
    """Offset, lexicographer file, words, hypernyms and whether it is an instance: a line of data.noun (wndb(5WN))."""
    fields = line.partition("|")[0].split()
    count = int(fields[3], 16)
    pointers = fields[5 + 2 * count :]
    above = [pointers[i + 1] for i in range(0, len(pointers) - 1, 4) if pointers[i] in ("@", "@i")]
    return fields[0], int(fields[1]), fields[4 : 4 + 2 * count : 2], above, "@i" in pointers


def spelled(entry: str) -> str:
    """A lexicon entry as a query would spell it: lower case, plain letters, single blanks."""
    return " ".join(re.findall(r"[a-z']+", entry.lower().replace("_", " ").replace("-", " ")))


def concepts(wordnet: WordNet) -> tuple[np.ndarray, dict[str, list[int]]]:
    """How near every concept is to every class, (concepts, 1000) in 0..1, and the concepts of each noun."""
    rows: dict[frozenset[str], int] = {}
    near: list[np.ndarray] = []
    words: dict[str, list[int]] = {}
    for noun in wordnet.senses:
        numbers = [numbered(wordnet, offset, rows, near) for offset in visible_senses(wordnet, noun)]
        if found := [number for number in numbers if number is not None]:
            words.setdefault(spelled(noun), list(dict.fromkeys(found)))
    words |= {plural: words[one] for plural, one in wordnet.irregular.items() if one in words and plural not in words}
    return np.stack(near), words


def visible_senses(wordnet: WordNet, noun: str) -> list[str]:
    """The first meanings that are visible things; none for adjectives that first mean something else (red, grey)."""
    senses = wordnet.senses[noun]
    visible = [o for o in senses if wordnet.is_visible(o)]
    return visible[:SENSES] if noun not in wordnet.adjectives or senses[0] in visible else []


def numbered(wordnet: WordNet, offset: str, rows: dict[frozenset[str], int], near: list[np.ndarray]) -> int | None:
    """The row of a synset's concept, added if it is new; None if no class is any kin to it."""
    attachment = wordnet.attachment(offset)
    if max(map(wordnet.information.__getitem__, attachment), default=0) < LEAST:
        return None
    if attachment not in rows:
        rows[attachment] = len(near)
        near.append(wordnet.shared(offset) ** SHARPNESS)
    return rows[attachment]


def word_list(wordnet: WordNet, nouns: dict[str, list[int]]) -> str:
    """One line per word or noun phrase, sorted by bytes: the text, and after a tab the numbers of its concepts."""
    entries = {word: "" for word in wordnet.single_words} | {n: "\t" + " ".join(map(str, c)) for n, c in nouns.items()}
    return "".join(f"{word}{numbers}\n" for word, numbers in sorted(entries.items()) if word)
