"""What a gallery's ledger knows of its photos: where each lies, which are done, failed or still planned.

The plan is written before anything is embedded and fixes which pictures share a shard, so that a run that was killed
and run again ends in the same gallery as one that was not.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.gallery import disk
from eyespot.gallery.photos.labels import kind_of, wider
from eyespot.gallery.photos.sources import LABEL_FILES, Labels, Met, Root, Seen, SkippedFiles, scan_counting
from eyespot.gallery.videos import stored
from eyespot.gallery.videos.addresses import VIDEO
from eyespot.storage import sqlite

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS roots(number INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT);
CREATE TABLE IF NOT EXISTS files(root INTEGER, path TEXT, size INTEGER, mtime INTEGER, place INTEGER, id TEXT,
    failed TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_id ON files(id);
{stored.INDEX}
CREATE TABLE IF NOT EXISTS items(id TEXT PRIMARY KEY, shard INTEGER, row INTEGER, measured TEXT)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS items_shard ON items(shard, row);
CREATE TABLE IF NOT EXISTS labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts(id TEXT PRIMARY KEY, facts TEXT, failed TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS columns(name TEXT PRIMARY KEY, kind TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS problems(root INTEGER, path TEXT, reason TEXT);
CREATE INDEX IF NOT EXISTS problems_path ON problems(root, path);
CREATE TABLE IF NOT EXISTS plan(shard INTEGER, position INTEGER, root INTEGER, path TEXT, size INTEGER, mtime INTEGER,
    place INTEGER, PRIMARY KEY(shard, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stale(shard INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS seen(root INTEGER, path TEXT, size INTEGER, mtime INTEGER, place INTEGER,
    PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen_labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS imported(shard INTEGER PRIMARY KEY, root INTEGER, rows INTEGER, format TEXT, space TEXT,
    source TEXT UNIQUE);
"""
_CHANGED = """FROM seen LEFT JOIN files USING(root, path) WHERE files.path IS NULL OR seen.size <> files.size
    OR seen.mtime <> files.mtime OR seen.place <> files.place"""
_NOT_SEEN = "NOT EXISTS (SELECT 1 FROM seen s WHERE s.root = files.root AND s.path = files.path)"
# A path is gone with its picture unless the picture was seen at another path.
_LOST = f"""{_NOT_SEEN} AND NOT EXISTS (SELECT 1 FROM files other JOIN seen USING(root, path)
    WHERE other.id = files.id)"""
_LAST = "\U0010ffff"  # sorts behind every path
REMOVED = "removed"  # the kind of a root that was taken out of the gallery
MEASURED = """SELECT measured LIKE '%"format"%' FROM items WHERE id = ?"""  # a row made again from a shard has none
RETRY = -1  # the time of a file that could not be read for no fault of its own: any later look finds it changed


class PlannedPicture(NamedTuple):
    """One picture to read: its shard and where it lies."""

    shard: int
    root: int
    seen: Seen


class ReadResult(NamedTuple):
    """What reading one planned picture gave: an id, or the reason why not; `out_of_reach` if it may be sound."""

    planned: PlannedPicture
    id: str | None
    failed: str | None
    out_of_reach: bool = False


class Failure(NamedTuple):
    """A picture, label row or folder that could not be read, and why."""

    root: int
    path: str
    reason: str


class StoredRow(NamedTuple):
    """One picture as the ledger knows it: its row, what was measured of it, every path, and its labels."""

    id: str
    measured: dict[str, Any]
    roots: list[int]
    paths: list[str]
    size: int
    mtime: int
    labels: dict[str, Any]


class Ledger:
    """The gallery's tables in `ledger.sqlite`; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self.sql: sqlite3.Connection = sqlite.connect(path, SCHEMA, derived=True)
        self._gallery = path.parent

    def close(self) -> None:
        """Fold the write-ahead log back into the file and let go of it."""
        self.sql.close()

    # -- roots ----------------------------------------------------------------------------------------------

    def add_root(self, root: Root) -> int:
        """The root's number, the same one each time it is indexed."""
        self.sql.execute(
            "INSERT INTO roots(path, kind) VALUES (?, ?)"
            f" ON CONFLICT(path) DO UPDATE SET kind = excluded.kind WHERE kind = '{REMOVED}'",
            root,
        )
        return int(self._one("SELECT number FROM roots WHERE path = ?", root.path))

    def roots(self) -> dict[int, Root]:
        """Every root by number."""
        rows = self.sql.execute("SELECT number, path, kind FROM roots WHERE kind <> ?", (REMOVED,))
        return {number: Root(path, kind) for number, path, kind in rows}

    def remove_root(self, number: int) -> int:
        """Take a root and its files out; how many pictures lay nowhere else.

        Its row stays, so that no later root gets its number while tables of facts still name it.
        """
        alone = self._one(
            f"SELECT count(DISTINCT id) FROM files WHERE root = ? AND place <> {VIDEO} AND NOT EXISTS"
            " (SELECT 1 FROM files other WHERE other.id = files.id AND other.root <> files.root)",
            number,
        )
        with sqlite.transaction(self.sql):
            self.sql.execute(
                "INSERT OR IGNORE INTO stale SELECT DISTINCT shard FROM items JOIN files USING(id) WHERE root = ?",
                (number,),
            )
            for table in ("files", "labels", "problems", "plan"):
                self.sql.execute(f"DELETE FROM {table} WHERE root = ?", (number,))
            self.sql.execute("UPDATE roots SET kind = ? WHERE number = ?", (REMOVED, number))
        return int(alone)

    # -- scanning -------------------------------------------------------------------------------------------

    def begin_looking(self) -> None:
        """Forget what earlier looks saw."""
        for table in ("seen", "seen_labels"):
            self.sql.execute(f"DELETE FROM {table}")

    def look(self, number: int, root: Root, skipped: SkippedFiles | None = None) -> None:
        """Walk a root into the tables `seen`, `seen_labels` and `problems`, in one transaction."""
        with sqlite.transaction(self.sql):
            self._kinds = self.columns()
            self.sql.execute("DELETE FROM problems WHERE root = ?", (number,))
            for record in scan_counting(root, skipped or SkippedFiles(), stored.known_files(self.sql, number)):
                self._note(number, record)
            self._protect_unreadable(number, root)
            stored.protect_files_of_extras(self.sql, number, root)
            stored.see_frames(self.sql, number)
            # Label rows that name no picture are problems of their own, not silence
            self.sql.execute(
                "INSERT INTO problems SELECT root, path, 'named in the labels, but no such picture is there'"
                " FROM seen_labels l WHERE root = ?"
                " AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.root = l.root AND s.path = l.path)"
                " AND NOT EXISTS (SELECT 1 FROM problems p WHERE p.root = l.root AND p.path = l.path)",
                (number,),
            )
            # Adopt the labels just seen; shards whose pictures' labels changed are written again
            rows = "SELECT path, facts FROM {} WHERE root = :n"
            old, new = rows.format("labels"), rows.format("seen_labels")
            changed = f"SELECT path FROM ({old} EXCEPT {new}) UNION SELECT path FROM ({new} EXCEPT {old})"
            self.sql.execute(
                "INSERT OR IGNORE INTO stale SELECT DISTINCT shard FROM items JOIN files USING(id)"
                f" WHERE root = :n AND (path IN ({changed})"
                f" OR ({stored.IS_FRAME} AND {stored.FILE_PATH} IN ({changed})))",
                {"n": number},
            )
            self.sql.execute("DELETE FROM labels WHERE root = ?", (number,))
            self.sql.execute("INSERT INTO labels SELECT * FROM seen_labels WHERE root = ?", (number,))

    def _note(self, number: int, record: Met) -> None:
        if isinstance(record, Seen):
            self.sql.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", (number, *record))
        elif isinstance(record, Labels):
            for name, value in record.facts.items():
                kind = kind_of(value)
                # A column keeps one kind over the whole gallery; a new or wider one makes every table
                # be written again
                spelled = next((known for known in self._kinds if known.casefold() == name.casefold()), name)
                wide = wider(self._kinds.get(spelled, kind), kind)
                if self._kinds.get(spelled) != wide:
                    self._kinds[spelled] = wide
                    self.sql.execute("INSERT OR REPLACE INTO columns VALUES (?, ?)", (spelled, wide))
                    self.sql.execute("INSERT OR IGNORE INTO stale SELECT DISTINCT shard FROM items")
            facts = json.dumps(record.facts, ensure_ascii=False)
            # A folder's own label file adds to what one above it says.
            self.sql.execute(
                "INSERT INTO seen_labels VALUES (?, ?, ?) ON CONFLICT(root, path) DO UPDATE"
                " SET facts = json_patch(facts, excluded.facts)",
                (number, record.path, facts),
            )
        else:
            self.sql.execute("INSERT INTO problems VALUES (?, ?, ?)", (number, record.path, record.reason))

    def _protect_unreadable(self, number: int, root: Root) -> None:
        """What lies at or below a path that cannot be read now is not gone: it counts as seen, with its old labels."""
        rows = self.sql.execute("SELECT path FROM problems WHERE root = ?", (number,)).fetchall()
        for (path,) in rows:
            # The first and last path that a problem at `path` leaves in doubt
            folder, _, name = path.rpartition("/")
            if path == "" or (root.kind == "list" and name == f"{os.path.basename(root.path)}:0"):
                below = "", _LAST  # nothing of the root could be read
            elif name == "":
                below = path, path + _LAST
            elif name in LABEL_FILES:
                below = (f"{folder}/", f"{folder}/{_LAST}") if folder else ("", _LAST)
            else:
                below = path, path
            span = (number, *below)
            self.sql.execute(
                "INSERT OR IGNORE INTO seen_labels SELECT * FROM labels WHERE root = ? AND path >= ? AND path <= ?",
                span,
            )
            if os.path.basename(path) not in LABEL_FILES:
                self.sql.execute(
                    "INSERT OR IGNORE INTO seen SELECT root, path, size, mtime, place FROM files"
                    " WHERE root = ? AND path >= ? AND path <= ?",
                    span,
                )

    def gone(self, number: int) -> tuple[int, int, int]:
        """Files of a root: all that are known, those that this run did not find there, and those found nowhere."""
        query = f"SELECT count(*), ifnull(sum({_NOT_SEEN}), 0), ifnull(sum({_LOST}), 0) FROM files WHERE root = ?"
        query += f" AND NOT {stored.IS_FRAME}"  # which go with their video
        known, not_seen, lost = self.sql.execute(query, (number,)).fetchone()
        return known, not_seen, lost

    def forget_gone(self, number: int) -> None:
        """Drop the files of a root that were not found."""
        with sqlite.transaction(self.sql):
            self.sql.execute(
                "INSERT OR IGNORE INTO stale SELECT DISTINCT shard FROM items WHERE id IN"
                f" (SELECT id FROM files WHERE root = ? AND {_NOT_SEEN})",
                (number,),
            )
            self.sql.execute(f"DELETE FROM files WHERE root = ? AND {_NOT_SEEN}", (number,))

    # -- planning -------------------------------------------------------------------------------------------

    def make_plan(self, shard_rows: int | None, retry_failed: bool) -> None:
        """Deal what is new or changed in the looks of this run into shards; on `retry_failed`, what failed too."""
        wanted = f"{_CHANGED} OR files.failed IS NOT NULL" if retry_failed else _CHANGED
        count = self._one(f"SELECT count(*) {wanted}")
        # Small shards for small jobs, so that a kill costs little; large ones for large jobs, so that few are opened
        rows = shard_rows or max(64, min(8192, 1 << max(count // 64, 1).bit_length()))
        first = self.free_shard()
        with sqlite.transaction(self.sql):
            self.sql.execute(
                "INSERT INTO plan SELECT ? + (upto - 1) / ?, n, root, path, size, mtime, place FROM"
                " (SELECT row_number() OVER pictures - 1 AS n, sum(iif(seen.place = ?, ?, 1)) OVER pictures AS upto,"
                f" root, path, seen.size AS size, seen.mtime AS mtime, seen.place AS place {wanted}"
                " WINDOW pictures AS (ORDER BY root, path))",
                (first, rows, VIDEO, min(stored.WEIGHT, rows)),
            )

    def free_shard(self) -> int:
        """The first number above every shard that is there or planned."""
        tables = " UNION ALL ".join(f"SELECT max(shard) n FROM {table}" for table in ("items", "plan", "imported"))
        known = int(self._one(f"SELECT ifnull(max(n), -1) FROM ({tables})"))
        return 1 + max(known, disk.last_number(self._gallery))  # a segment has the numbers of all its shards

    def unplan(self, root: int) -> None:
        """Take a root's pictures off the plan; the next look at it plans them anew."""
        self.sql.execute("DELETE FROM plan WHERE root = ?", (root,))

    def planned(self) -> dict[tuple[int, int], int]:
        """How many pictures are still to be read, by shard, in order, and root."""
        rows = self.sql.execute("SELECT shard, root, count(*) FROM plan GROUP BY shard, root ORDER BY shard, root")
        return {(shard, root): pictures for shard, root, pictures in rows}

    def plan_of(self, shard: int) -> list[PlannedPicture]:
        """The pictures of one planned shard, in order."""
        rows = self.sql.execute(
            "SELECT root, path, size, mtime, place FROM plan WHERE shard = ? ORDER BY position", (shard,)
        )
        return [PlannedPicture(shard, root, Seen(*seen)) for root, *seen in rows]

    # -- results --------------------------------------------------------------------------------------------

    def record(self, shard: int, outcomes: Sequence[ReadResult], new: Mapping[str, dict[str, Any]]) -> None:
        """Take down a shard's outcomes and its new rows, and strike it from the plan; call inside a transaction.

        `new` maps the ids of the rows, in order, to what was measured of each picture.
        """
        rows = [(id, shard, row, json.dumps(measured)) for row, (id, measured) in enumerate(new.items())]
        self.sql.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", rows)
        reached = [one.planned for one in outcomes if not one.out_of_reach]
        videos = [(root, seen.path) for _, root, seen in reached if seen.offset == VIDEO]
        stored.replace_frames(self.sql, videos, [(root, *seen) for _, root, seen in reached if seen.offset < VIDEO])
        for outcome in outcomes:
            # Where one picture lies and what it is; one out of reach keeps the id it had
            (_, root, seen), id = outcome.planned, outcome.id
            self.sql.execute(
                "INSERT OR IGNORE INTO stale SELECT shard FROM items WHERE id IN"
                " (?, (SELECT id FROM files WHERE root = ? AND path = ?))",
                (id, root, seen.path),
            )
            if outcome.out_of_reach:
                id = self._one("SELECT max(id) FROM files WHERE root = ? AND path = ?", root, seen.path)
            mtime = RETRY if outcome.out_of_reach else seen.mtime
            file_row = (root, seen.path, seen.size, mtime, seen.offset, id, outcome.failed)
            self.sql.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", file_row)
        self.sql.execute("DELETE FROM stale WHERE shard = ?", (shard,))
        self.sql.execute("DELETE FROM plan WHERE shard = ?", (shard,))

    def measure(self, measured: Mapping[str, dict[str, Any]]) -> None:
        """Take down what was measured of pictures that have a row already."""
        rows = [(json.dumps(facts), id) for id, facts in measured.items()]
        self.sql.executemany("UPDATE items SET measured = ? WHERE id = ?", rows)

    def is_known(self, id: str) -> bool:
        """Whether a picture of these bytes has a row already."""
        return self.sql.execute("SELECT 1 FROM items WHERE id = ?", (id,)).fetchone() is not None

    def seen(self, root: int, path: str) -> Seen:
        """A known file as it was when it was last read."""
        row = self.sql.execute(
            "SELECT size, mtime, place FROM files WHERE root = ? AND path = ?", (root, path)
        ).fetchone()
        return Seen(path, *row)

    def rows_of(self, shard: int) -> Iterator[StoredRow]:
        """Every row of a shard in order; one without paths is gone and waits for its picture to come back."""
        rows = self.sql.execute(
            "SELECT i.id, i.measured, files.root, files.path, files.size, files.mtime, l.facts, t.facts FROM items i"
            f" LEFT JOIN files USING(id) LEFT JOIN labels l ON l.root = files.root"
            f" AND l.path IN (files.path, {stored.FILE_PATH})"
            " LEFT JOIN texts t ON t.id = i.id"
            " WHERE i.shard = ? ORDER BY i.row, files.root, files.path, l.path DESC",
            (shard,),
        )
        row: StoredRow | None = None
        for id, measured, root, path, size, mtime, labels, text in rows:
            if row is None or row.id != id:
                if row:
                    yield row
                row = StoredRow(id, json.loads(measured), [], [], size or 0, mtime or 0, {})
            if path is not None:
                if (root, path) not in zip(row.roots[-1:], row.paths[-1:], strict=True):  # the labels of its video
                    row.roots.append(root)
                    row.paths.append(path)
                known = json.loads(text or "{}") | json.loads(labels or "{}")
                row.labels.update({name: value for name, value in known.items() if name not in row.labels})
        if row:
            yield row

    def stale_shards(self) -> list[int]:
        """Shards whose facts changed since their table was written."""
        return [n for (n,) in self.sql.execute("SELECT shard FROM stale ORDER BY shard")]

    def refreshed(self, shard: int) -> None:
        """The shard's table has been written again."""
        self.sql.execute("DELETE FROM stale WHERE shard = ?", (shard,))

    def shard_rows(self) -> dict[int, int]:
        """How many rows each shard of scanned pictures has, in order."""
        return dict(self.sql.execute("SELECT shard, count(*) FROM items GROUP BY shard ORDER BY shard").fetchall())

    def imported_rows(self) -> dict[int, int]:
        """How many rows each imported shard has, by the number that it came with."""
        return dict(self.sql.execute("SELECT shard, rows FROM imported ORDER BY shard").fetchall())

    def known_shards(self) -> set[int]:
        """Shards that hold rows, that are planned, or whose vectors others computed."""
        query = "SELECT shard FROM items UNION SELECT shard FROM plan UNION SELECT shard FROM imported"
        return {shard for (shard,) in self.sql.execute(query)}

    def columns(self) -> dict[str, str]:
        """Label columns and their kinds (int, float, text), in a fixed order."""
        return dict(self.sql.execute("SELECT name, kind FROM columns ORDER BY name").fetchall())

    def failures(self) -> list[Failure]:
        """What could not be read, by root and path."""
        rows = self.sql.execute(
            "SELECT root, path, failed FROM files WHERE failed IS NOT NULL"
            " UNION ALL SELECT root, path, reason FROM problems ORDER BY 1, 2"
        )
        return [Failure(*row) for row in rows]

    def counts(self) -> tuple[int, int]:
        """Live pictures and frames, and paths that lead to them; an imported row counts as one of each."""
        imported = int(self._one("SELECT ifnull(sum(rows), 0) FROM imported"))
        query = f"SELECT count(DISTINCT id), count(id) FROM files WHERE place <> {VIDEO}"
        pictures, paths = self.sql.execute(query).fetchone()
        return imported + pictures, imported + paths

    def counts_in(self, roots: Iterable[int]) -> tuple[int, int]:
        """Pictures that were read in these roots, and paths that lead to them."""
        query = f"SELECT count(DISTINCT id), count(id) FROM files WHERE failed IS NULL AND place > {VIDEO} AND root IN"
        pictures, paths = self.sql.execute(f"{query} ({', '.join(map(str, roots))})").fetchone()
        return pictures, paths

    def _one(self, query: str, *values: Any) -> Any:
        return self.sql.execute(query, values).fetchone()[0]
