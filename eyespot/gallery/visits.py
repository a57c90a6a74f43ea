"""A walk through a root, compared with what the index knows of it, folder by folder as the walk goes on.

Only differences are written down, in tables of the connection that nobody else sees: `changed` files, which are new or
not as they were; those that are `gone`; and the labels. The index itself changes when the walk is over, in one short
transaction, so that a walk of hours keeps nobody from recording verdicts.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eyespot.gallery import video_frames
from eyespot.gallery.disk import FACTS, stored_place
from eyespot.gallery.index_tables import FOLDER_OF, HAS_ROW, NAME_OF, SHARD_OF, SHOWN_ID, STALE, STALE_ALL, split
from eyespot.photos.found import Labels, Met, Seen, Unreadable
from eyespot.photos.labels import kind_of, label_rows, wider
from eyespot.photos.names import NamedFiles, folded, nearly
from eyespot.photos.places import Root
from eyespot.photos.sources import LABEL_FILES
from eyespot.photos.videos.addresses import FRAGMENT, VIDEO
from eyespot.storage import sqlite

SCHEMA = """
CREATE TEMP TABLE IF NOT EXISTS changed(root INTEGER, path TEXT, size INTEGER, mtime INTEGER, place INTEGER,
    PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS gone(root INTEGER, path TEXT, folder INTEGER, name TEXT, place INTEGER,
    PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS seen_labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS in_order(path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, place INTEGER,
    written INTEGER) WITHOUT ROWID;
"""
TABLES = ("changed", "gone", "seen_labels")
_LAST = "\U0010ffff"  # sorts behind every path
_BATCH = 10_000
_GONE = "INSERT OR IGNORE INTO gone SELECT ?, ? || name, folder, name, place FROM paths WHERE folder = ?"
PICTURE = "eyespot:picture"  # in a list of facts, the id of the picture that a line speaks of
_HINTS = 20  # labels without a picture for which the nearest name is looked for


def stated_facts(gallery: Path, root: Root) -> Iterator[Labels | Unreadable]:
    """What a list of facts says, by where a picture lies and by its id: some files are renamed, others changed."""
    for row in label_rows(Path(root.place), os.path.basename(root.path)):
        if isinstance(row, Unreadable):
            yield row
        else:
            id = row.facts.pop(PICTURE, None)
            yield Labels(stored_place(gallery, row.path), row.facts)
            yield from [] if id is None else [Labels(f"#{id}", row.facts)]


@dataclass(frozen=True)
class _Folder:
    """A folder on the way down to where the walk is: what the index knows of it that the walk has not come to."""

    path: str
    left: dict[str, tuple[int, int, int]]  # size, time and place by name
    videos: set[str]  # that the walk came to


class RootComparison:
    """One visit of a root; `record` takes what a walk meets, folder by folder, and `finish` ends it."""

    def __init__(self, sql: sqlite3.Connection, number: int, root: Root) -> None:
        self.sql, self.number, self.root = sql, number, root
        row = sql.execute("SELECT began FROM visits WHERE root = ?", (number,)).fetchone()
        self.since = row[0] if row else math.inf  # nanoseconds
        self.folders: dict[str, int] = dict(
            sql.execute("SELECT path, number FROM folders WHERE root = ?", (number,)).fetchall()
        )
        self.way: list[_Folder] = []
        self.here = _Folder("before the walk", {}, set())  # no path is in it: folders end in a slash
        self.changed: list[tuple[int, str, int, int, int]] = []
        self.problems: list[tuple[int, str, str]] = []
        self.columns: dict[str, str] = dict(sql.execute("SELECT name, kind FROM columns").fetchall())
        self.known_columns = dict(self.columns)
        self.respelled: list[tuple[str, str]] = []  # names in labels, and the pictures that are spelled otherwise
        self.relabelled = 0  # pictures that were known and have other labels now
        self._here = {"n": number}

    def record(self, records: Iterable[Met]) -> None:
        """Compare what a walk meets."""
        for one in records if self.root.kind == "folder" else self._in_order(records):
            if isinstance(one, Seen):
                folder, name = split(one.path)
                if folder != self.here.path:
                    self._move_to(folder)
                # A file of the same size and time that was written to since the last visit may be another picture
                if self.here.left.pop(name, None) != one[1:4] or one.changed > self.since:
                    self.changed.append((self.number, *one[:4]))
                    if len(self.changed) == _BATCH:
                        self._write_changed()
                if one.offset == VIDEO:
                    self.here.videos.add(name)
            elif isinstance(one, Labels):
                self.respelled += [(one.near, one.path)] if one.near else []
                self._record_labels(one)
            else:
                self.problems.append((self.number, one.path, one.reason))

    def _in_order(self, records: Iterable[Met]) -> Iterator[Met]:
        """Tars and lists name their files in any order, and some twice: here they come by path, each once."""
        self.sql.execute("DELETE FROM in_order")
        for one in records:
            if isinstance(one, Seen):
                self.sql.execute("INSERT OR REPLACE INTO in_order VALUES (?, ?, ?, ?, ?)", one)
            else:
                yield one
        for row in self.sql.execute("SELECT * FROM in_order ORDER BY path"):
            yield Seen(*row)

    def _move_to(self, folder: str) -> None:
        """The walk leaves folders, which it never enters again, and enters one."""
        while self.way and not folder.startswith(self.way[-1].path):
            self._leave()
        if not self.way or self.way[-1].path != folder:
            number = self.folders.pop(folder, None)
            rows = self.sql.execute("SELECT name, size, mtime, place FROM paths WHERE folder = ?", (number,))
            self.way.append(_Folder(folder, {row[0]: row[1:] for row in rows}, set()))
        self.here = self.way[-1]

    def _leave(self) -> None:
        folder = self.way.pop()
        if not folder.left:
            return
        lost = [
            (folder.path, name)
            for name, (_, _, place) in folder.left.items()
            if place >= VIDEO or name[:-FRAGMENT] not in folder.videos  # frames are there as long as their video is
        ]
        self.sql.executemany(
            "INSERT OR IGNORE INTO gone SELECT root, folders.path || name, folder, name, place"
            " FROM folders JOIN paths ON folder = folders.number"
            f" WHERE root = {self.number} AND folders.path = ? AND name = ?",
            lost,
        )

    def _write_changed(self) -> None:
        self.sql.executemany("INSERT OR REPLACE INTO changed VALUES (?, ?, ?, ?, ?)", self.changed)
        self.changed = []

    def _record_labels(self, labels: Labels) -> None:
        for name, value in labels.facts.items():
            kind = kind_of(value)
            # A column keeps one kind over the whole gallery
            spelled = next((known for known in self.columns if known.casefold() == name.casefold()), name)
            self.columns[spelled] = wider(self.columns.get(spelled, kind), kind)
        # A folder's own label file adds to what one above it says
        self.sql.execute(
            "INSERT INTO seen_labels VALUES (?, ?, ?) ON CONFLICT(root, path) DO UPDATE"
            " SET facts = json_patch(facts, excluded.facts)",
            (self.number, labels.path, json.dumps(labels.facts, ensure_ascii=False)),
        )

    # -- the end of the walk --------------------------------------------------------------------------------

    def finish(self) -> None:
        """What is gone is known: what the walk did not come to, but could have."""
        self._write_changed()
        while self.way:
            self._leave()
        rows = [(self.number, path, number) for path, number in self.folders.items()]
        self.sql.executemany(_GONE, rows)
        self._protect_unreadable()
        video_frames.protect_files_of_extras(self.sql, self.number, self.root)
        video_frames.keep_frames(self.sql, self.number)
        if self.root.kind == FACTS:  # which speak of pictures of other roots, also of some that went
            return
        # Label rows that name no picture are problems of their own, not silence
        named = {path for _, path, _ in self.problems}
        for path, found in self._match_spellings([path for (path,) in self.sql.execute(_WITHOUT_PICTURE, self._here)]):
            if path not in named:
                why = "named in the labels, but no such picture is there"
                self.problems.append((self.number, path, f"{why}{found}"))

    def _match_spellings(self, without: list[str]) -> list[tuple[str, str]]:
        """Give labels without a picture to the only one whose path is theirs in another spelling; the rest, and hints.

        A hint names the pictures that fit equally, or the one of the same folder that nearly does.
        """
        pictures = self.sql.execute(_PICTURES, self._here) if without else ()
        left: list[tuple[str, str]] = []
        files = NamedFiles((path for (path,) in pictures), {folded(split(path)[1]) for path in without})
        for path in without:
            found = files.called(path)
            if len(found) == 1:
                self.respelled.append((path, found[0]))
                self.sql.execute(_RESPELLED, (found[0], self.number, path))
                self.sql.execute("DELETE FROM seen_labels WHERE root = ? AND path = ?", (self.number, path))
            else:
                hint = f"; {len(found)} are spelled like it, such as {found[0]}" if found else ""
                if not hint and len(left) < _HINTS:
                    inside = self._here | {"from": (folder := split(path)[0]), "to": folder + _LAST}
                    some = f"SELECT path FROM ({_PICTURES}) WHERE path >= :from AND path < :to LIMIT 2000"
                    hint = nearly(path, [one for (one,) in self.sql.execute(some, inside) if split(one)[0] == folder])
                left.append((path, hint))
        return left

    def _protect_unreadable(self) -> None:
        """What lies at or below a path that cannot be read now is not gone, and has its old labels."""
        for _, path, _ in self.problems:
            # The first and last path that a problem at `path` leaves in doubt
            folder, _, name = path.rpartition("/")
            if path == "" or (self.root.kind in ("list", FACTS) and name == os.path.basename(self.root.path)):
                below = "", _LAST  # nothing of the root could be read
            elif name == "":
                below = path, path + _LAST
            elif name in LABEL_FILES:
                below = (f"{folder}/", f"{folder}/{_LAST}") if folder else ("", _LAST)
            else:
                below = path, path
            span = (self.number, *below)
            self.sql.execute(
                "INSERT OR IGNORE INTO seen_labels SELECT * FROM labels WHERE root = ? AND path >= ? AND path <= ?",
                span,
            )
            if os.path.basename(path) not in LABEL_FILES:
                self.sql.execute("DELETE FROM gone WHERE root = ? AND path >= ? AND path <= ?", span)

    def write(self) -> None:
        """Adopt problems, columns and labels; shards whose pictures' labels changed are written again."""
        old = self.sql.execute("SELECT * FROM problems WHERE root = ?", (self.number,)).fetchall()
        changes = self.sql.execute(_CHANGED_LABELS, {"n": self.number}).fetchone()
        if not changes and sorted(old) == sorted(self.problems) and self.columns == self.known_columns:
            return
        with sqlite.transaction(self.sql):
            self.sql.execute("DELETE FROM problems WHERE root = ?", (self.number,))
            self.sql.executemany("INSERT INTO problems VALUES (?, ?, ?)", self.problems)
            for name, kind in self.columns.items():
                if self.known_columns.get(name) != kind:  # a new or wider one makes every table be written again
                    self.sql.execute("INSERT OR REPLACE INTO columns VALUES (?, ?)", (name, kind))
                    self.sql.execute(STALE_ALL)
            if changes:
                named = {"n": self.number}
                self.sql.execute("DROP TABLE IF EXISTS temp.relabelled")
                self.sql.execute(f"CREATE TEMP TABLE relabelled AS {_CHANGED_LABELS}", named)
                self.sql.execute(_STALE_STATED if self.root.kind == FACTS else _STALE_LABELS, named)
                self.relabelled = self.sql.execute(f"SELECT count(DISTINCT s.path) {_LABELLED}", named).fetchone()[0]
                self.sql.execute("DELETE FROM labels WHERE root = :n AND path IN (SELECT path FROM relabelled)", named)
                self.sql.execute(
                    "INSERT INTO labels SELECT s.* FROM relabelled JOIN seen_labels s USING(path) WHERE s.root = :n",
                    named,
                )


# Labels that are new, other than they were, or gone
_CHANGED_LABELS = """SELECT s.path AS path FROM seen_labels s LEFT JOIN labels l ON l.root = s.root AND l.path = s.path
    WHERE s.root = :n AND l.facts IS NOT s.facts
    UNION ALL SELECT l.path FROM labels l WHERE l.root = :n
    AND NOT EXISTS (SELECT 1 FROM seen_labels s WHERE s.root = l.root AND s.path = l.path)"""
_LABELLED = f"""FROM relabelled s
    JOIN folders d ON d.root = :n AND d.path = {FOLDER_OF.format("s.path")} JOIN paths ON folder = d.number
    AND (name = {NAME_OF.format("s.path")} OR ({video_frames.IS_FRAME} AND name > {NAME_OF.format("s.path")}
    AND name < {NAME_OF.format("s.path")} || '#u')) WHERE {HAS_ROW}"""
_STALE_LABELS = f"INSERT OR IGNORE INTO stale SELECT DISTINCT {SHARD_OF.format('paths.item')} {_LABELLED}"
_STALE_STATED = f"""{STALE} JOIN folders d ON d.number = folder JOIN roots r ON r.number = d.root
    JOIN pictures p ON p.number = +item WHERE {HAS_ROW} AND ('#' || {SHOWN_ID.format("p.id")} IN
    (SELECT path FROM relabelled) OR place(r.path, r.kind, d.path || name) IN (SELECT path FROM relabelled))"""
_RESPELLED = """INSERT INTO seen_labels SELECT root, ?, facts FROM seen_labels WHERE root = ? AND path = ?
    ON CONFLICT(root, path) DO UPDATE SET facts = json_patch(excluded.facts, facts)"""
_PICTURES = """SELECT path FROM changed WHERE root = :n UNION SELECT d.path || name FROM paths JOIN folders d
    ON d.number = folder WHERE d.root = :n AND NOT EXISTS
    (SELECT 1 FROM gone g WHERE g.root = d.root AND g.path = d.path || paths.name)"""
_WITHOUT_PICTURE = f"""SELECT path FROM seen_labels s WHERE root = :n
    AND NOT EXISTS (SELECT 1 FROM changed c WHERE c.root = s.root AND c.path = s.path)
    AND (EXISTS (SELECT 1 FROM gone g WHERE g.root = s.root AND g.path = s.path) OR NOT EXISTS
    (SELECT 1 FROM folders d JOIN paths ON folder = d.number WHERE d.root = s.root
    AND d.path = {FOLDER_OF.format("s.path")} AND name = {NAME_OF.format("s.path")}))"""
