"""Makes the words of a segment of the tables of its shards, without reading a text again.

FTS5 stores an index as b-trees and merges them by itself. Rows have numbers of their own in each shard's table
(`postings.OWN_ROWS`), so the b-trees of all shards are copied into one table as they are, and FTS5 makes one of them.
What was not made so, or of other columns, is made of the facts anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.postings import is_current, lengths_in, members_in, open_table, read_about
from eyespot.gallery.word_texts import make_tables, read_sources
from eyespot.storage.digests import damaged_at_a_glance

MOST = 1_000  # b-trees of one table; FTS5 takes 2,000
_TOTALS, _STRUCTURE = 1, 10  # rows of FTS5's table of blocks: its sums, and which b-trees there are
_NUMBER = 37  # bits behind the number of a b-tree in the number of a block


class Merged(NamedTuple):
    """A table of words, where the rows of each shard begin (n, 2), and how many words each row has."""

    table: bytes
    members: NDArray[np.int64]
    lengths: NDArray[Any]


def merged(shards: Sequence[Path], names: str) -> Merged | None:
    """The words of these shards, one behind the other; None where one lacks them, or has others than its neighbours."""
    abouts = [read_about(shard / disk.WORDS) for shard in shards]
    for shard, about in zip(shards, abouts, strict=True):
        if not is_current(about, shard, names) or about["names"] != names or damaged_at_a_glance(shard, [disk.WORDS]):
            return None
    starts = accumulate(map(items_table.count_items, shards), initial=0)
    of_each = [np.add(members_in(about), (0, start)) for about, start in zip(abouts, starts, strict=False)]
    members = np.concatenate(of_each)
    if (np.diff(members[:, 0]) < np.diff(members[:, 1])).any():  # copies of one shard have the same keys
        return None
    with suppress(sqlite3.Error):  # SQLite may be built to refuse writing to FTS5's own tables
        table = _joined([shard / disk.WORDS for shard in shards])
        return table and Merged(table, members, np.concatenate([lengths_in(about) for about in abouts]))
    return None


def _joined(places: Sequence[Path]) -> bytes | None:
    """One table with all their rows; None where the columns differ, or there are too many b-trees."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
        with closing(open_table(places[0])) as first:
            sources = read_sources(first)
        make_tables(table, sources)
        table.execute("CREATE TABLE borne(taxon INTEGER, name TEXT)")
        trees: list[int] = []  # number, first and last page of each
        pages, sums = 0, np.zeros(len(sources) + 1, np.int64)
        for place in places:
            table.execute("ATTACH ? AS part", (str(place),))
            if table.execute("SELECT field, name FROM part.sources ORDER BY number").fetchall() != sources:
                return None
            more, written = _copied(table, len(trees) // 3)
            trees += more
            pages += written
            sums += _numbers(_block(table, _TOTALS))
            table.execute("DETACH part")
        if len(trees) > 3 * MOST:
            return None
        count = len(trees) // 3
        structure = bytes(4) + b"".join(map(_varint, (1, count, pages, 0, count, *trees)))
        blocks = [(_STRUCTURE, structure), (_TOTALS, b"".join(map(_varint, sums.tolist())))]
        table.executemany("REPLACE INTO words_data VALUES (?, ?)", blocks)
        copied = table.serialize()
    with closing(open_table(copied)) as table:  # FTS5 has not read it yet
        table.execute("INSERT INTO words(words) VALUES ('optimize')")
        table.execute("VACUUM")
        return table.serialize()


def _copied(table: sqlite3.Connection, known: int) -> tuple[list[int], int]:
    """Copy what the table `part` holds behind so many b-trees; gives its own, and the pages written so far."""
    _, _, pages, *rest = _numbers(_block(table, _STRUCTURE)[4:])
    trees: list[int] = []
    table.execute("BEGIN")
    while rest:  # of each level how many are being merged, how many there are, and three numbers of each
        _, count, *rest = rest
        for at in range(0, 3 * count, 3):
            number, new = rest[at], known + len(trees) // 3 + 1
            span = (number << _NUMBER, (number + 1) << _NUMBER)
            table.execute(
                "INSERT INTO words_data SELECT id + ?, block FROM part.words_data WHERE id >= ? AND id < ?",
                ((new - number) << _NUMBER, *span),
            )
            pages_of_terms = "INSERT INTO words_idx SELECT ?, term, pgno FROM part.words_idx WHERE segid = ?"
            table.execute(pages_of_terms, (new, number))
            trees += [new, *rest[at + 1 : at + 3]]
        rest = rest[3 * count :]
    table.execute("INSERT INTO words_docsize SELECT * FROM part.words_docsize")
    table.execute("INSERT INTO borne SELECT * FROM part.borne EXCEPT SELECT * FROM borne")
    table.execute("COMMIT")
    return trees, pages


def _block(table: sqlite3.Connection, number: int) -> bytes:
    found: bytes = table.execute("SELECT block FROM part.words_data WHERE id = ?", (number,)).fetchone()[0]
    return found


def _numbers(block: bytes) -> list[int]:
    """SQLite's numbers of seven bits a byte, the highest first."""
    numbers, number = list[int](), 0
    for byte in block:
        number = number << 7 | byte & 127
        if byte < 128:
            numbers.append(number)
            number = 0
    return numbers


def _varint(number: int) -> bytes:
    low = bytes([number & 127])
    while number := number >> 7:
        low = bytes([number & 127 | 128]) + low
    return low
