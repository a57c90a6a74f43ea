"""The pictures that a gallery's index knows: a number for each, what was measured of it, and where its row is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

from eyespot.gallery import video_frames
from eyespot.gallery.index_tables import FACTS, SHOWN_ID, WordNumbers, fact_values, measured_of, packed, unpacked
from eyespot.photos.provenance import merged
from eyespot.storage import sqlite

_FOLDERS = 100_000  # numbers that are in memory at most
_ROWS = f"""SELECT pictures.number, id, {FACTS}, d.root, d.path || name AS whole, size, mtime, l.facts, s.facts,
    t.facts FROM pictures LEFT JOIN paths ON paths.item = +pictures.number LEFT JOIN folders d ON d.number = folder
    LEFT JOIN labels l ON l.root = d.root AND l.path IN (d.path || name, d.path || {video_frames.FILE_NAME})
    LEFT JOIN picture_texts t ON t.item = pictures.number LEFT JOIN roots r ON r.number = d.root
    LEFT JOIN labels s ON s.root IN (SELECT number FROM roots WHERE kind = 'facts')
    AND s.path IN ('#' || {SHOWN_ID.format("id")}, place(r.path, r.kind, d.path || name))
    WHERE pictures.number BETWEEN ? AND ? ORDER BY pictures.number, d.root, whole, l.path DESC, s.root, s.path"""


class StoredRow(NamedTuple):
    """One picture as the index knows it: its row, what was measured of it, every path, and its labels."""

    id: str
    measured: dict[str, Any]
    roots: list[int]
    paths: list[str]
    size: int
    mtime: int
    labels: dict[str, Any]


class PictureTables:
    """Pictures, their rows in shards, and the folders that their paths are in."""

    sql: sqlite3.Connection

    def forget_numbers(self) -> None:
        """Of words and folders: after a transaction that did not end well they may become those of others."""
        self.words = WordNumbers(self.sql)
        self._folders: dict[tuple[int, str], int] = {}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or none of it."""
        try:
            with sqlite.transaction(self.sql):
                yield
        except BaseException:
            self.forget_numbers()
            raise

    def folder(self, root: int, path: str) -> int:
        """The number of a folder of a root, by its path with the slash; a new one if need be."""
        if (number := self._folders.get((root, path))) is None:
            self.sql.execute("INSERT OR IGNORE INTO folders(root, path) VALUES (?, ?)", (root, path))
            number = int(self._one("SELECT number FROM folders WHERE root = ? AND path = ?", root, path))
            if len(self._folders) > _FOLDERS:
                self._folders = {}
            self._folders[root, path] = number
        return number

    def add_pictures(self, shard: int, new: Mapping[str, dict[str, Any]]) -> dict[str, int]:
        """Take down the rows of a new shard; the numbers of its pictures by their ids."""
        first = 1 + int(self._one("SELECT ifnull(max(number), 0) FROM pictures"))
        numbers = {id: number for number, id in enumerate(new, first)}
        rows = ((numbers[id], packed(id), *fact_values(facts, self.words)) for id, facts in new.items())
        self.sql.executemany("INSERT INTO pictures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        if numbers:
            self.sql.execute("INSERT INTO spans VALUES (?, ?, ?, 0)", (first, len(numbers), shard))
        return numbers

    def number_of(self, id: str) -> int | None:
        """The number of a picture that has a row."""
        row = self.sql.execute("SELECT number FROM pictures WHERE id = ?", (packed(id),)).fetchone()
        return None if row is None else int(row[0])

    def measure(self, measured: Mapping[str, dict[str, Any]]) -> None:
        """Take down what was measured of pictures that have a row already."""
        rows = [(*fact_values(facts, self.words), packed(id)) for id, facts in measured.items()]
        values = ", ".join(f"{name} = ?" for name in FACTS.split(", "))
        self.sql.executemany(f"UPDATE pictures SET {values} WHERE id = ?", rows)

    def is_known(self, id: str) -> bool:
        """Whether a picture of these bytes has a row already."""
        return self.number_of(id) is not None

    def rows_of(self, shard: int) -> Iterator[StoredRow]:
        """Every row of a shard in order; one without paths is gone and waits for its picture to come back."""
        spans = self.sql.execute("SELECT first, rows FROM spans WHERE shard = ? ORDER BY row", (shard,)).fetchall()
        found = chain.from_iterable(self.sql.execute(_ROWS, (first, first + count - 1)) for first, count in spans)
        at, row = -1, None
        for number, id, *facts, root, path, size, mtime, labels, stated, text in found:
            if number != at:
                if row:
                    yield row
                at = number
                row = StoredRow(unpacked(id), measured_of(facts, self.words), [], [], size or 0, mtime or 0, {})
            assert row is not None
            if path is not None:
                if (root, path) not in zip(row.roots[-1:], row.paths[-1:], strict=True):  # the labels of its video
                    row.roots.append(root)
                    row.paths.append(path)
                if text or labels or stated:
                    known = json.loads(text or "{}") | json.loads(stated or "{}") | json.loads(labels or "{}")
                    row.labels.update(merged(row.labels, known))
        if row:
            yield row

    def has_shards(self, first: int, last: int) -> bool:
        """Whether a row is in one of these shards."""
        query = "SELECT 1 FROM spans WHERE shard BETWEEN ? AND ? LIMIT 1"
        return self.sql.execute(query, (first, last)).fetchone() is not None

    def move_rows(self, members: Sequence[tuple[int, int]], last: int) -> None:
        """Shards up to `last`, numbers with their rows, now lie one after the other in the first of them."""
        first, start = members[0][0], 0
        inside = "FROM stale WHERE shard BETWEEN ? AND ?"
        with self.transaction():
            for number, rows in members:
                if number > first:
                    values = (first, start, number)
                    self.sql.execute("UPDATE spans SET shard = ?, row = row + ? WHERE shard = ?", values)
                start += rows
            stale = self.sql.execute(f"SELECT 1 {inside}", (first, last)).fetchone()
            self.sql.execute(f"DELETE {inside}", (first, last))
            self.sql.executemany("INSERT INTO stale VALUES (?)", [(first,)] if stale else [])

    def shard_rows(self) -> dict[int, int]:
        """How many rows each shard of scanned pictures has, in order."""
        return dict(self.sql.execute("SELECT shard, sum(rows) FROM spans GROUP BY shard ORDER BY shard").fetchall())

    def span_rows(self, shard: int) -> list[int]:
        """The rows of each shard that one was merged of, in order, as far as they were taken down one by one."""
        return [rows for (rows,) in self.sql.execute("SELECT rows FROM spans WHERE shard = ? ORDER BY row", (shard,))]

    def failed_files(self, roots: Iterable[int]) -> int:
        """How many files of these roots could not be read; rows of labels are not files."""
        among = ", ".join(map(str, sorted(roots)))
        rows = "path GLOB '*:[0-9]*' OR EXISTS (SELECT 1 FROM labels l WHERE l.root = p.root AND l.path = p.path)"
        problems = f"SELECT count(*) FROM problems p WHERE root IN ({among}) AND NOT ({rows})"
        return int(self._one(f"SELECT ({problems}) + count(failed) FROM files WHERE root IN ({among})"))

    def _one(self, query: str, *values: Any) -> Any:
        return self.sql.execute(query, values).fetchone()[0]
