"""Words beside the photos, to be searched: labels, titles, texts inside the files, names of files and folders.

An SQLite FTS5 table whose rows are the rows of the gallery's shards. It is a copy of what the shards say and is made
again when they have changed: beside them, else in the user's cache, else in memory. Where the gallery was given names
(`eyespot names`), it also says which of them stand beside the photos, and under which taxa they belong.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.postings import ROWS, ArrayStore, KeyList, PostingList, read_keys, read_postings
from eyespot.storage import sqlite

if TYPE_CHECKING:
    from eyespot.gallery.taxonomy.name_index import NameIndex

NAME = "words.sqlite"
VERSION = "2"  # of the table; another one makes it again
NAMES_AT_ONCE = 500  # of one question
LISTED = 40  # columns; of more, a page of rows is read instead of the lists of each
STORED, RECENT = 64 << 20, 32 << 20  # bytes of posting lists, and of what the last queries made of them


Answered = TypeVar("Answered")
Lists = TypeVar("Lists", PostingList, KeyList)


def stamp_of(gallery: Path) -> str:
    """What changes whenever a shard's facts or the names of the roots do."""
    parts = [VERSION, repr(sorted(disk.read_header(gallery).roots.items()))]
    for shard in disk.shard_paths(gallery):
        status = (shard / disk.ITEMS).stat()
        parts.append(f"{shard.name} {status.st_mtime_ns} {status.st_size}")
    with suppress(FileNotFoundError):
        status = (gallery / disk.NAMES).stat()
        parts.append(f"names {status.st_mtime_ns} {status.st_size}")
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
    """The words of one gallery; opening makes the table if it is missing or out of date.

    stored: bytes of posting lists that it has at hand for the next query. listed: up to this many columns each has
    posting lists of its own; of more columns, the rows that are shown are read instead.
    """

    def __init__(self, gallery: Path, stored: int = STORED, listed: int = LISTED) -> None:
        self.gallery, self._listed = gallery, listed
        self.store = ArrayStore(stored)  # of posting lists
        self.recent = ArrayStore(min(stored, RECENT))  # of what is made of them for one query
        self._current = _SourceColumns(None, [], {})

    @cached_property
    def _source(self) -> Path | bytes:
        """The file of the table, or its bytes where no folder may be written."""
        stamp = stamp_of(self.gallery)
        return next((place for place in self._places if _read_stamp(place) == stamp), None) or self._made(stamp)

    @property
    def _places(self) -> list[Path]:
        digest = hashlib.sha256(os.fsencode(self.gallery.absolute())).hexdigest()[:16]
        # Without a home nowhere: others could foresee a name in the folder for passing files
        with suppress(RuntimeError):
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
            return [self.gallery / NAME, cache / "eyespot" / "words" / f"{digest}.sqlite"]
        return [self.gallery / NAME]

    def _made(self, stamp: str) -> Path | bytes:
        from eyespot.gallery.word_table import fill  # with all that reads texts, which a search does not need

        for place in self._places:
            with suppress(OSError), sqlite.new_database(place) as table:
                fill(table, self.gallery, stamp)
            if _read_stamp(place) == stamp:
                return place
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
            fill(table, self.gallery, stamp)
            return table.serialize()

    @property
    def version(self) -> Hashable:
        """What changes with the table."""
        if isinstance(self._source, bytes):
            return id(self._source)
        with suppress(FileNotFoundError):
            status = self._source.stat()
            return status.st_ino, status.st_mtime_ns, status.st_size
        self._source = self._made(stamp_of(self.gallery))
        return self.version

    def _ask(self, question: Callable[[sqlite3.Connection], Answered]) -> Answered:
        """What a question gives; a table that turns out to be damaged, or is gone by now, is made again first."""
        try:
            with closing(self._open()) as table:
                return question(table)
        except sqlite3.DatabaseError:
            self._source = self._made(stamp_of(self.gallery))
        with closing(self._open()) as table:
            return question(table)

    def _open(self) -> sqlite3.Connection:
        """A connection of its own for each question, so that threads may ask at once."""
        if isinstance(self._source, Path):
            return sqlite.connect_to_read(self._source)
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(self._source)
        return connection

    @property
    def columns(self) -> list[str]:
        """What the words come from, such as "label species", "title" or "file name"."""
        return self._ask(_columns)

    @property
    def rows(self) -> int:
        """How many rows the table has."""

        def read(_: object) -> Iterator[KeyList]:
            count = self._ask(lambda table: int(table.execute(_ROWS).fetchone()[0]))
            yield KeyList(np.array([count]))

        ((count,),) = self.store.get([("rows", self.version)], read)
        return int(count[0])

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
        return self._ask(lambda table: [name for (name,) in table.execute(question, taxa)]) if taxa else []

    def counts(self, words: Sequence[str]) -> list[int]:
        """How many rows hold each word."""
        return self._ask(lambda table: [table.execute(_COUNT, (_either(word),)).fetchone()[0] for word in words])

    def matching(self, words: Sequence[QueryWord | str]) -> MatchingRows:
        """The rows that hold any of these words, or a name in its place; none without a word."""
        words = _query_words(words)
        if not words:
            return MatchingRows(np.zeros(0, np.int64), np.zeros((0, 0), bool), np.zeros(0))
        forms = self._lists([f'"{form}"' for word in words for form in _forms(word.word)], read_postings)
        mine = iter(forms)
        of_words = [[next(mine) for _ in _forms(word.word)] for word in words]
        of_names = {
            names: self._lists([*_any_name(names)], read_keys) for names in dict.fromkeys(word.names for word in words)
        }
        return _joined(of_words, [of_names[word.names] for word in words])

    def _lists(self, questions: Sequence[str], read: Callable[[sqlite3.Connection, str], Lists]) -> list[Lists]:
        """What FTS5 answers to each of these questions."""
        version = self.version
        by_key = {(read.__name__, version, _digest(question)): question for question in questions}

        def made(keys: list[tuple[str, Hashable, bytes]]) -> list[Lists]:
            return self._ask(lambda table: [read(table, by_key[key]) for key in keys])

        return self.store.get([(read.__name__, version, _digest(question)) for question in questions], made)

    def sources(self, words: Sequence[QueryWord | str], keys: Sequence[int]) -> dict[int, list[str]]:
        """For each of these rows the columns that hold any of the words, or of the names in their places."""
        words = _query_words(words)
        found: dict[int, list[str]] = {key: [] for key in keys}
        if not words or not found:
            return found
        if self._current.version != (version := self.version):
            self._current = _SourceColumns(version, self.columns, {})
        layout = self._current
        if layout.distinct <= self._listed and not any(word.names for word in words):
            return self._listed_sources(words, found, layout)
        from eyespot.gallery.word_table import fill_some

        roots = disk.read_header(self.gallery).roots
        by_shard: dict[int, list[int]] = {}
        for key in found:
            by_shard.setdefault(key // ROWS, []).append(key % ROWS)
        for shard in disk.shard_paths(self.gallery):
            if not (rows := by_shard.get(disk.number_of(shard))):
                continue
            # Names may be tens of thousands: they are looked for in a table of these rows alone
            with suppress(FileNotFoundError), closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
                fill_some(table, shard, rows, roots)
                for row, name in _sources(table, words):
                    found[disk.number_of(shard) * ROWS + row].append(name)
        return found

    def _listed_sources(
        self, words: Sequence[QueryWord], found: dict[int, list[str]], layout: _SourceColumns
    ) -> dict[int, list[str]]:
        """The same by the posting lists of each column, which the next page of the query needs again."""
        words = [word for word in words if len(self.matching([word]).keys)]
        keys = np.fromiter(found, np.int64, len(found))  # (n,)
        questions = [f"{{c{number}}} : {_either(word.word)}" for number in range(len(layout.columns)) for word in words]
        lists = np.zeros((len(questions), len(keys)), bool)
        for held, among in zip(self._lists(questions, read_keys), lists, strict=True):
            if len(held.keys):
                among[:] = held.keys.take(np.searchsorted(held.keys, keys), mode="clip") == keys
        shape = len(layout.columns), len(words), len(keys)
        holding: NDArray[np.bool_] = np.any(lists.reshape(shape), axis=1)  # (columns, n)
        for at in np.flatnonzero(holding.any(axis=0)).tolist():
            names = [name for name, held in zip(layout.columns, holding[:, at].tolist(), strict=True) if held]
            key = int(keys[at])
            found[key] = sorted(names, key=layout.order(self.gallery, key // ROWS).index)
        return found


class _SourceColumns(NamedTuple):
    """The columns of one version of the table, and for shards that were needed the order in which they have them."""

    version: Hashable
    columns: list[str]
    orders: dict[int, list[str]]

    @property
    def distinct(self) -> float:
        """How many columns there are; infinity where two are called the same, so that a name says neither."""
        return len(self.columns) if len(set(self.columns)) == len(self.columns) else inf

    def order(self, gallery: Path, shard: int) -> list[str]:
        """The columns of a shard, then any others."""
        if shard not in self.orders:
            from eyespot.gallery.word_table import source_names, text_columns

            own: list[str] = []
            with suppress(FileNotFoundError):  # a shard may be gone by now
                own = source_names(text_columns(disk.shard_path(gallery, shard)))
            self.orders[shard] = list(dict.fromkeys([*own, *self.columns]))
        return self.orders[shard]


def _columns(table: sqlite3.Connection) -> list[str]:
    return [name for (name,) in table.execute("SELECT name FROM sources ORDER BY number")]


def _query_words(words: Sequence[QueryWord | str]) -> list[QueryWord]:
    return [QueryWord(word) if isinstance(word, str) else word for word in words]


def _joined(of_words: Sequence[Sequence[PostingList]], of_names: Sequence[Sequence[KeyList]]) -> MatchingRows:
    """One row for each key of the lists of each word, and of the names in its place."""
    each: list[list[PostingList | KeyList]] = [[*forms] for forms in of_words]
    for parts, names in zip(each, of_names, strict=True):
        parts[:] = [part for part in [*parts, *names] if len(part.keys)]
    distinct = {id(part.keys): part.keys for parts in each for part in parts}
    # `unique` loads numpy.ma, and most words of most queries stand nowhere
    keys = next(iter(distinct.values()), np.zeros(0, np.int64))
    if len(distinct) > 1:
        keys = np.unique(np.concatenate([*distinct.values()]))
    holds, bm25 = np.zeros((len(of_words), len(keys)), bool).T, np.zeros(len(keys))  # each word's rows lie together
    places = {name: slice(None) if its is keys else np.searchsorted(keys, its) for name, its in distinct.items()}
    for word, parts in enumerate(each):
        for part in parts:
            holds[places[id(part.keys)], word] = True
            if isinstance(part, PostingList):
                bm25[places[id(part.keys)]] += part.bm25  # in the order of the phrases, as FTS5 itself adds them up
    return MatchingRows(keys, holds, bm25)


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sources(table: sqlite3.Connection, words: Sequence[QueryWord]) -> Iterator[tuple[int, str]]:
    """Each row with each column that holds any of the words, or of the names in their places."""
    terms = {term for (term,) in table.execute("SELECT term FROM terms")}
    # A word beyond ASCII may be another one in the table
    others = {name for word in words for name in word.names if not name.isascii() or terms.issuperset(name.split())}
    parts = [" OR ".join(_either(word.word) for word in words), *_any_name(sorted(others))]
    for number, name in enumerate(_columns(table)):
        for key in {key for part in parts for (key,) in table.execute(_KEYS, (f"{{c{number}}} : ({part})",))}:
            yield key, name


def _any_name(names: Sequence[str]) -> Iterator[str]:
    """Questions that together ask for any of these names, whose words are letters and digits alone."""
    for start in range(0, len(names), NAMES_AT_ONCE):
        yield " OR ".join(f'"{name}"' for name in names[start : start + NAMES_AT_ONCE])


_ROWS = "SELECT value FROM about WHERE name = 'rows'"
_COUNT = "SELECT count(*) FROM words WHERE words MATCH ?"
_KEYS = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid"


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, each once: letters, digits and the marks on them, and nothing else.

    No sign of FTS5's own query language is left.
    """
    letters = unicodedata.normalize("NFC", text).lower()
    plain = "".join(letter if unicodedata.category(letter)[0] in "LNM" else " " for letter in letters)
    return list(dict.fromkeys(plain.split()))


def _either(word: str) -> str:
    """A word in FTS5's language, in any of its forms."""
    quoted = [f'"{form}"' for form in _forms(word)]
    return f"({' OR '.join(quoted)})"


def _forms(word: str) -> list[str]:
    """A word, and its singular or plural where it has the form of one in English."""
    forms = {word, f"{word}s", f"{word}es"} if len(word) > 2 and word.isalpha() else {word}
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms |= {word[:-1], *([word[:-2]] if word.endswith(("ches", "shes", "xes", "sses")) else [])}
    return sorted(forms)


def _read_stamp(place: Path) -> str | None:
    """The stamp of a table that can be read; a damaged one is made again."""
    if place.is_file():
        with suppress(sqlite3.Error, OSError), closing(sqlite.connect_to_read(place)) as table:
            found = table.execute("SELECT value FROM about WHERE name = 'stamp'").fetchone()
            return str(found[0]) if found else None
    return None
