"""Posting lists: the rows of an FTS5 table that hold a phrase, as arrays, and a store of those that were last needed.

SQLite hands a list over as one text. Row by row it would take the interpreter's lock once for each of the rows, and
among other busy threads each of them waits for it.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

ROWS = 1 << 32  # rows of a shard: the row of the table is shard · ROWS + row
AT_ONCE = 1 << 18  # rows of one text
ENTRY = 600  # bytes that an entry of the store takes beside its arrays, about
_HIGH, _LOW = 2.0**31, 2.0**53  # a score is two whole numbers, which lose no bit of it
_KEYS = """
SELECT group_concat(key), max(key), count(*)
FROM (SELECT rowid AS key FROM words WHERE words MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?)
"""
_SCORED = f"""
SELECT group_concat(key), max(key), count(*), group_concat(CAST(score * {_HIGH} AS INTEGER)),
    group_concat(CAST((score * {_HIGH} - CAST(score * {_HIGH} AS INTEGER)) * {_LOW} AS INTEGER))
FROM (SELECT rowid AS key, -bm25(words) AS score FROM words WHERE words MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?)
"""

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


class PostingList(NamedTuple):
    """The rows that hold a phrase: their keys in order (n,), and their BM25 for it (n,)."""

    keys: NDArray[np.int64]
    bm25: NDArray[np.float64]


class KeyList(NamedTuple):
    """Keys of rows in order, (n,)."""

    keys: NDArray[np.int64]


def read_postings(table: sqlite3.Connection, phrase: str) -> PostingList:
    """The rows that a question in FTS5's language finds, with their BM25."""
    keys, high, low = _read(table, _SCORED, phrase, 3)
    return PostingList(keys, high / _HIGH + low / (_HIGH * _LOW))


def read_keys(table: sqlite3.Connection, question: str) -> KeyList:
    """The rows that a question in FTS5's language finds."""
    return KeyList(*_read(table, _KEYS, question, 1))


def _read(table: sqlite3.Connection, statement: str, question: str, columns: int) -> list[NDArray[np.int64]]:
    parts: list[list[NDArray[np.int64]]] = [[np.zeros(0, np.int64)] for _ in range(columns)]
    last, count = -1, AT_ONCE
    while count == AT_ONCE:
        first, last, count, *others = table.execute(statement, (question, last, AT_ONCE)).fetchone()
        if count:
            for part, text in zip(parts, [first, *others], strict=True):
                part.append(np.fromstring(text, np.int64, sep=","))
    return [np.concatenate(part) for part in parts]


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
