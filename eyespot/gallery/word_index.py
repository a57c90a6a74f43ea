"""Words beside the photos, to be searched: labels, titles, texts inside the files, names of files and folders.

Each shard has a table of its own (`word_table`), and a search asks all of them; scores are those of one table of all
rows. Where the gallery was given names (`eyespot names`), the tables also say which of them stand beside the photos,
and under which taxa they belong.
"""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.postings import (
    ROWS,
    ArrayStore,
    KeyList,
    PostingList,
    ShardWords,
    is_current,
    names_version,
    open_table,
    read_about,
)
from eyespot.gallery.word_texts import fill_some, read_sources
from eyespot.storage.digests import damaged_at_a_glance

if TYPE_CHECKING:
    from eyespot.gallery.taxonomy.name_index import NameIndex

NAMES_AT_ONCE = 500  # of one question
STORED, RECENT = 64 << 20, 32 << 20  # bytes of posting lists, and of what the last queries made of them


Answered = TypeVar("Answered")
Lists = TypeVar("Lists", PostingList, KeyList)
Read = Callable[[ShardWords, sqlite3.Connection, str], Lists]


class QueryWord(NamedTuple):
    """A word of a query, and what may stand in its place: names of the same thing, each of one word or more."""

    word: str
    names: tuple[str, ...] = ()


class MatchingRows(NamedTuple):
    """Rows of the table that hold any of some words: their keys in order (n,), which words (n, words), BM25 (n,)."""

    keys: NDArray[np.int64]
    holds: NDArray[np.bool_]
    bm25: NDArray[np.float64]


class WordIndex:
    """The words of one gallery.

    A table that is missing, damaged or out of date is made in memory, for this search.
    stored: bytes of posting lists that it has at hand for the next query. hidden: whether a column by this name is not
    searched. made: how many tables it has made since that was stated.
    """

    def __init__(self, gallery: Path, stored: int = STORED, hidden: Callable[[str], bool] | None = None) -> None:
        self.gallery, self.hidden, self.made = gallery, hidden, 0
        self.store = ArrayStore(stored)  # of posting lists
        self.recent = ArrayStore(min(stored, RECENT))  # of what is made of them for one query
        self._opened: dict[str, ShardWords] = {}

    @property
    def tables(self) -> list[ShardWords]:
        """Those of all shards, as the shards are now."""
        names, tables = _state(self.gallery / disk.NAMES), list[ShardWords]()
        for shard in disk.shard_paths(self.gallery):
            with suppress(FileNotFoundError):  # a shard may be gone by now
                version = shard.name, names, *(_state(shard / name) for name in (disk.ITEMS, disk.WORDS))
                known = self._opened.get(shard.name)
                if known is None or known.version != version:
                    known = self._opened[shard.name] = self._open(shard, version)
                tables.append(known)
        return tables

    def _open(self, shard: Path, version: Hashable, anew: bool = False) -> ShardWords:
        """The table as it lies beside the shard; where that is not sound, or `anew`, one made now, in memory."""
        place = shard / disk.WORDS
        about = {} if anew else read_about(place)
        if is_current(about, shard, names_version(self.gallery)) and not damaged_at_a_glance(shard, [place.name]):
            return ShardWords.of(shard, place, version, about)
        from eyespot.gallery.word_table import WordMaker  # with all that reads texts

        self.made += 1
        with closing(WordMaker(self.gallery)) as maker:
            made = maker.made(shard)
        return ShardWords.of(shard, made, version, read_about(made))

    @property
    def notes(self) -> list[str]:
        """What the user should know: that tables were made which the gallery could have."""
        if not self.made:
            return []
        shards = "1 shard" if self.made == 1 else f"{self.made} shards"
        line = f"eyespot index -g {quote(str(self.gallery))}"
        return [f"the words beside the photos of {shards} were read anew for this search; store them with: {line}"]

    @property
    def version(self) -> Hashable:
        """What changes with the tables."""
        return tuple(table.version for table in self.tables)

    @property
    def rows(self) -> int:
        """How many rows have words."""
        return sum(table.rows for table in self.tables)

    def _ask(self, table: ShardWords, question: Callable[[sqlite3.Connection], Answered]) -> Answered:
        """What a question gives; a table that turns out to be damaged, or is gone by now, is made again first."""
        try:
            with closing(open_table(table.source)) as connection:
                return question(connection)
        except sqlite3.DatabaseError:
            table = self._opened[table.shard.name] = self._open(table.shard, table.version, anew=True)
        with closing(open_table(table.source)) as connection:
            return question(connection)

    @cached_property
    def names(self) -> NameIndex | None:
        """The names in other languages that the gallery was given; None if there are none."""
        if not (self.gallery / disk.NAMES).is_file():
            return None
        from eyespot.gallery.taxonomy.name_index import NameIndex

        return NameIndex.of(self.gallery)

    def borne(self, taxa: Sequence[int]) -> list[str]:
        """The names that stand beside photos for these taxa, or for what belongs to them."""
        question = f"SELECT DISTINCT name FROM borne WHERE taxon IN ({', '.join('?' * len(taxa))})"
        each = (self._ask(one, lambda table: table.execute(question, taxa).fetchall()) for one in self.tables if taxa)
        return list(dict.fromkeys(name for found in each for (name,) in found))

    def matching(self, words: Sequence[QueryWord | str]) -> MatchingRows:
        """The rows that hold any of these words, or a name in its place; none without a word."""
        words, tables = _query_words(words), self.tables
        if not words or not tables:
            return MatchingRows(np.zeros(0, np.int64), np.zeros((0, len(words)), bool), np.zeros(0))
        phrases = [f'"{form}"' for word in words for form in _forms(word.word)]
        mine = iter(self._lists(tables, phrases, ShardWords.postings))
        of_words = [[next(mine) for _ in _forms(word.word)] for word in words]
        of_names = {
            names: self._lists(tables, [*_any_name(names)], ShardWords.keys)
            for names in dict.fromkeys(word.names for word in words)
        }
        rows, total = sum(table.rows for table in tables), sum(int(table.lengths.sum()) for table in tables)
        return _joined(of_words, [of_names[word.names] for word in words], rows, total / max(rows, 1))

    def _lists(self, tables: Sequence[ShardWords], questions: Sequence[str], read: Read[Lists]) -> list[Lists]:
        """What the tables together answer to each of these questions."""
        found = []
        for lists in zip(*(self._read(table, questions, read) for table in tables), strict=True):
            keys = [one.keys + table.number * ROWS for one, table in zip(lists, tables, strict=True)]
            rest = (np.concatenate(arrays) for arrays in list(zip(*lists, strict=True))[1:])
            found.append(type(lists[0])(np.concatenate(keys), *rest))
        return found

    def _read(self, table: ShardWords, questions: Sequence[str], read: Read[Lists]) -> list[Lists]:
        by_key = {(read.__name__, table.version, _digest(question)): question for question in questions}

        def made(lacking: list[tuple[str, Hashable, bytes]]) -> list[Lists]:
            def answers(connection: sqlite3.Connection) -> list[Lists]:
                among = ""
                if (hidden := self.hidden) is not None:  # in FTS5's language, the columns that are searched
                    names = enumerate(name for name, _ in read_sources(connection))
                    among = f"{{{' '.join(f'c{at}' for at, name in names if name is None or not hidden(name))}}} : "
                return [read(table, connection, f"{among}({by_key[key]})") for key in lacking]

            return self._ask(table, answers)

        return self.store.get([(read.__name__, table.version, _digest(question)) for question in questions], made)

    def sources(self, words: Sequence[QueryWord | str], keys: Sequence[int]) -> dict[int, list[str]]:
        """For each of these rows what holds any of the words, or of the names in their places, such as "title".

        A table of these rows alone is asked: names may be tens of thousands.
        """
        words = _query_words(words)
        found: dict[int, list[str]] = {key: [] for key in keys}
        roots = disk.read_header(self.gallery).roots
        by_shard: dict[int, list[int]] = {}
        for key in found if words else ():
            by_shard.setdefault(key // ROWS, []).append(key % ROWS)
        for one in (one for one in self.tables if one.number in by_shard) if by_shard else ():
            sources = self._ask(one, read_sources)
            with suppress(FileNotFoundError), closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
                fill_some(
                    table, one.shard, [row for row in by_shard[one.number] if row < len(one.lengths)], roots, sources
                )
                for row, name in _sources(table, words):
                    found[one.number * ROWS + row].append(name)
        return found


def _state(place: Path) -> tuple[int, ...]:
    with suppress(FileNotFoundError, NotADirectoryError):
        status = place.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    return ()


def _query_words(words: Sequence[QueryWord | str]) -> list[QueryWord]:
    return [QueryWord(word) if isinstance(word, str) else word for word in words]


def _joined(
    of_words: Sequence[Sequence[PostingList]], of_names: Sequence[Sequence[KeyList]], rows: int, average: float
) -> MatchingRows:
    """One row for each key of the lists of each word, and of the names in its place."""
    each: list[list[PostingList | KeyList]] = [[*forms] for forms in of_words]
    for parts, names in zip(each, of_names, strict=True):
        parts[:] = [part for part in [*parts, *names] if len(part.keys)]
    distinct = {id(part.keys): part.keys for parts in each for part in parts}
    # `unique` loads numpy.ma, and most words of most queries stand nowhere
    keys = next(iter(distinct.values()), np.zeros(0, np.int64))
    if len(distinct) > 1:
        every = np.sort(np.concatenate([*distinct.values()]))
        keys = every[np.diff(every, prepend=-1) > 0]
    holds, bm25 = np.zeros((len(of_words), len(keys)), bool).T, np.zeros(len(keys))  # each word's rows lie together
    places = {name: slice(None) if its is keys else np.searchsorted(keys, its) for name, its in distinct.items()}
    for word, parts in enumerate(each):
        for part in parts:
            holds[places[id(part.keys)], word] = True
            if isinstance(part, PostingList):
                # In the order of the phrases, as FTS5 itself adds them up
                bm25[places[id(part.keys)]] += part.bm25(rows, average)
    return MatchingRows(keys, holds, bm25)


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sources(table: sqlite3.Connection, words: Sequence[QueryWord]) -> Iterator[tuple[int, str]]:
    """Each row with each column that holds any of the words, or of the names in their places."""
    terms = {term for (term,) in table.execute("SELECT term FROM terms")}
    # A word beyond ASCII may be another one in the table
    others = {name for word in words for name in word.names if not name.isascii() or terms.issuperset(name.split())}
    forms = dict.fromkeys(f'"{form}"' for word in words for form in _forms(word.word))
    parts = [" OR ".join(forms), *_any_name(sorted(others))]
    for number, name in table.execute("SELECT number, name FROM sources ORDER BY number").fetchall():
        for key in {key for part in parts for (key,) in table.execute(_KEYS, (f"{{c{number}}} : ({part})",))}:
            yield key, name


def _any_name(names: Sequence[str]) -> Iterator[str]:
    """Questions that together ask for any of these names, whose words are letters and digits alone."""
    for start in range(0, len(names), NAMES_AT_ONCE):
        yield " OR ".join(f'"{name}"' for name in names[start : start + NAMES_AT_ONCE])


_KEYS = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid"


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, each once: letters, digits and the marks on them, and nothing else.

    No sign of FTS5's own query language is left.
    """
    letters = unicodedata.normalize("NFC", text).lower()
    plain = "".join(letter if unicodedata.category(letter)[0] in "LNM" else " " for letter in letters)
    return list(dict.fromkeys(plain.split()))


def _forms(word: str) -> list[str]:
    """A word, and its singular or plural where it has the form of one in English."""
    forms = {word, f"{word}s", f"{word}es"} if len(word) > 2 and word.isalpha() else {word}
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms |= {word[:-1], *([word[:-2]] if word.endswith(("ches", "shes", "xes", "sses")) else [])}
    return sorted(forms)
