"""The table of a shard's words as a search reads it, posting lists as arrays, and a store of those last needed.

SQLite hands a list over as one text. Row by row it would take the interpreter's lock once for each of the rows, and
among other busy threads each of them waits for it.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from math import log
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.storage import sqlite
from eyespot.storage.digests import sound_digests

VERSION = "3"  # of the table; another one makes it again
ROWS = 1 << 32  # rows of a shard: the key of a row is shard · ROWS + row
AT_ONCE = 1 << 18  # rows of one text
ENTRY = 600  # bytes that an entry of the store takes beside its arrays, about
K1, B, LEAST = 1.2, 0.75, 1e-6  # of BM25 as FTS5 computes it, and the least weight of a phrase there
_SCALE = 2.0**50  # of a score as a whole number
_KEYS = """
SELECT group_concat(key), max(key), count(*)
FROM (SELECT rowid AS key FROM words WHERE words MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?)
"""
_SCORED = f"""
SELECT group_concat(key), max(key), count(*), group_concat(CAST(score * {_SCALE} AS INTEGER))
FROM (SELECT rowid AS key, -bm25(words) AS score FROM words WHERE words MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?)
"""

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


class PostingList(NamedTuple):
    """The rows that hold a phrase: their keys in order, how often each holds it, and the words of each; (n,) each."""

    keys: NDArray[np.int64]
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def bm25(self, rows: int, average: float) -> NDArray[np.float64]:
        """BM25 among so many rows of that many words on average, (n,), as FTS5 computes it to the last bit."""
        return _rarity(rows, len(self.keys)) * (self.counts * (K1 + 1) / (self.counts + _least(self.lengths, average)))


class KeyList(NamedTuple):
    """Keys of rows in order, (n,)."""

    keys: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ShardWords:
    """The table of a shard: its file or bytes, what changes with it, rows that have words, and words of each row.

    shard: its folder; while shards are merged, one of the same number may lie beside it.
    """

    shard: Path
    source: Path | bytes
    version: Hashable
    rows: int
    lengths: NDArray[Any]

    @classmethod
    def of(cls, shard: Path, source: Path | bytes, version: Hashable, about: Mapping[str, Any]) -> ShardWords:
        """From what the table says of itself."""
        return cls(shard, source, version, about["rows"], np.frombuffer(about["lengths"], about["type"]))

    @property
    def number(self) -> int:
        """The number of the shard."""
        return disk.number_of(self.shard)

    def postings(self, connection: sqlite3.Connection, phrase: str) -> PostingList:
        """The rows that a phrase in FTS5's language finds."""
        keys, scores = _read(connection, _SCORED, phrase, 2)
        lengths, rarity = self.lengths[keys].astype(np.float64), _rarity(self.rows, len(keys))
        # The table's BM25 knows no other shards; it gives no more than how often a row holds the phrase
        score, least = scores / _SCALE, _least(lengths, self.lengths.sum() / max(self.rows, 1))
        return PostingList(keys, np.rint(score * least / (rarity * (K1 + 1) - score)), lengths)

    def keys(self, connection: sqlite3.Connection, question: str) -> KeyList:
        """The rows that a question in FTS5's language finds."""
        return KeyList(*_read(connection, _KEYS, question, 1))


def _rarity(rows: int, found: int) -> float:
    weight = log((rows - found + 0.5) / (found + 0.5))
    return weight if weight > 0 else LEAST


def _least(lengths: NDArray[np.float64], average: float) -> NDArray[np.float64]:
    return K1 * (1 - B + B * lengths / average)


def _read(table: sqlite3.Connection, statement: str, question: str, columns: int) -> list[NDArray[np.int64]]:
    parts: list[list[NDArray[np.int64]]] = [[np.zeros(0, np.int64)] for _ in range(columns)]
    last, count = -1, AT_ONCE
    while count == AT_ONCE:
        first, last, count, *others = table.execute(statement, (question, last, AT_ONCE)).fetchone()
        if count:
            for part, text in zip(parts, [first, *others], strict=True):
                part.append(np.fromstring(text, np.int64, sep=","))
    return [np.concatenate(part) for part in parts]


# -- whether a table is of its shard --------------------------------------------------------------------------


def stamp_of(shard: Path) -> str:
    """What changes with a shard's facts and with the form of the table."""
    status = (shard / disk.ITEMS).stat()
    return f"{VERSION} {sound_digests(shard).get(disk.ITEMS) or (status.st_mtime_ns, status.st_size)}"


def names_version(gallery: Path) -> str:
    """What changes with the names of a gallery; empty if it was given none, or none that can be read."""
    with suppress(sqlite3.Error):
        if (gallery / disk.NAMES).is_file():
            with closing(sqlite.connect_to_read(gallery / disk.NAMES)) as table:
                return str(table.execute("PRAGMA user_version").fetchone()[0])
    return ""


def open_table(source: Path | bytes) -> sqlite3.Connection:
    """A connection for one question, so that threads may ask at once."""
    if isinstance(source, Path):
        return sqlite.connect_to_read(source)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(source)
    return connection


def read_about(source: Path | bytes) -> dict[str, Any]:
    """What a table says of itself: `stamp`, `names`, `rows`, `lengths`, their `type`; nothing where that fails."""
    with suppress(sqlite3.Error, OSError), closing(open_table(source)) as table:
        return dict(table.execute("SELECT name, value FROM about").fetchall())
    return {}


def is_current(about: Mapping[str, Any], shard: Path, names: str) -> bool:
    """Whether a table is of a shard as it is, and of these names; without names whatever it knew of others."""
    return about.get("stamp") == stamp_of(shard) and names in ("", about.get("names"))


# -- what is stored of lists ----------------------------------------------------------------------------------


class ArrayStore:
    """Tuples of arrays that are made once and last as long as there is room; threads may ask at once.

    limit: bytes of all that is stored. What was not needed for longest goes first, and what is larger is not stored.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, tuple[Any, ...]] = OrderedDict()
        self._size, self._lock = 0, Lock()

    def get(self, keys: Sequence[Hashable], make: Callable[[list[Any]], Iterable[Arrays]]) -> list[Arrays]:
        """What is stored under each key; `make` gets the keys that lack it, each once. No array can be written."""
        with self._lock:
            found = {key: self._entries[key] for key in keys if key in self._entries}
            for key in found:
                self._entries.move_to_end(key)
        if lacking := [key for key in dict.fromkeys(keys) if key not in found]:
            for key, made in zip(lacking, make(lacking), strict=True):
                for array in made:
                    array.flags.writeable = False
                found[key] = made
                if (size := _size(made)) <= self.limit:
                    with self._lock:
                        self._size += size if key not in self._entries else 0
                        self._entries.setdefault(key, made)
                        while self._size > self.limit:
                            self._size -= _size(self._entries.popitem(last=False)[1])
        return [found[key] for key in keys]  # type: ignore[misc]

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All that is stored."""
        with self._lock:
            return [array for made in self._entries.values() for array in made]

    @property
    def size(self) -> int:
        """The bytes of all that is stored."""
        return self._size


def _size(made: tuple[Any, ...]) -> int:
    return ENTRY + sum(int(array.nbytes) for array in made)
