"""What the index of a gallery knows of its photos: where each lies, which are done, failed or still planned.

The plan is written before anything is embedded and fixes which pictures share a shard, so that a run that was killed
and run again ends in the same gallery as one that was not.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.gallery import disk, video_frames, visits
from eyespot.gallery.index_tables import HAS_ROW, SCHEMA, SHARD_OF, STALE, VIEW, packed, split
from eyespot.gallery.picture_tables import PictureTables, StoredRow
from eyespot.photos.found import PlannedPicture, Seen
from eyespot.photos.kinds import SkippedFiles
from eyespot.photos.names import stored_name
from eyespot.photos.places import Root, full_path
from eyespot.photos.provenance import DATE_SOURCE, POSITION_SOURCE
from eyespot.photos.sources import scan_counting
from eyespot.photos.videos.addresses import VIDEO
from eyespot.storage import sqlite
from eyespot.storage.copies import FOLDER, INDEX, LEDGER, name_of
from eyespot.storage.digests import sound_digests
from eyespot.types import Encoder, EyespotError

if TYPE_CHECKING:  # a run that finds nothing new reads no picture
    from eyespot.photos.decode_workers import ReadPicture

__all__ = ["REMOVED", "RETRY", "Failure", "PictureIndex", "StoredRow"]

_CACHE = 64 << 10  # KiB: ids come in no order, and their index is large
REMOVED = "removed"  # the kind of a root that was taken out of the gallery
RETRY = -1  # the time of a file that could not be read for no fault of its own: any later visit finds it changed
# A path is gone with its picture unless the picture was seen at another path.
_SEEN_ELSEWHERE = """SELECT 1 FROM paths other JOIN folders d ON d.number = other.folder WHERE other.item = paths.item
    AND d.root IN ({}) AND NOT EXISTS (SELECT 1 FROM gone o WHERE o.root = d.root AND o.path = d.path || other.name)"""


class Failure(NamedTuple):
    """A picture, label row or folder that could not be read, and why."""

    root: int
    path: str
    reason: str


def _open_ledger(gallery: Path) -> None:
    """Make `ledger.sqlite` where there is none, and settle its copies; `DamagedLedger` if it is damaged."""
    ledger = gallery / LEDGER
    with sqlite.whole(ledger), closing(sqlite.connect(ledger, derived=True)) as sql:
        if "roots" not in sqlite.table_names(sql):
            return
    raise EyespotError(
        f"{gallery} is of an eyespot before 26 November 2026, which is read no more; index again into a new folder:"
        f" eyespot index PHOTOS -g {gallery.with_name(f'{gallery.name}-new')}"
    )


class PictureIndex(PictureTables):
    """The tables of a gallery's `index.sqlite`; one writer at a time, who holds the gallery's lock.

    It can be made again from the shards, and a run holds long transactions in it. What people made is in
    `ledger.sqlite`, which is small and never waits for them.
    """

    def __init__(self, gallery: Path) -> None:
        _open_ledger(gallery)
        self.sql: sqlite3.Connection = sqlite.connect(gallery / INDEX, SCHEMA, views=VIEW)
        self._gallery = gallery
        self.forget_numbers()
        self._visited: dict[int, int] = {}  # roots, and when this run began to look through them: nanoseconds
        self.sql.execute(f"PRAGMA cache_size = -{_CACHE}")
        self.sql.executescript(VIEW + visits.SCHEMA)

        def place(path: str | None, kind: str, name: str) -> str | None:
            """Where a file of a root lies, as lists of facts name it; None for a picture without one."""
            return None if path is None else stored_name(full_path(Root(path, kind), name))

        self.sql.create_function("place", 3, place)

    def close(self) -> None:
        """Fold the write-ahead log back into the file and let go of it."""
        self.sql.close()
        ledger = self._gallery / LEDGER
        if (self._gallery / disk.HEADER).exists() and name_of(ledger) not in sound_digests(self._gallery / FOLDER):
            with suppress(EyespotError, OSError, sqlite3.Error):  # whoever opens it next says what is wrong with it
                _open_ledger(self._gallery)  # in a new gallery it was made before the header, and has no digest yet

    # -- roots ----------------------------------------------------------------------------------------------

    def add_root(self, root: Root) -> int:
        """The root's number, the same one each time it is indexed."""
        self.sql.execute(
            "INSERT INTO roots(path, kind) VALUES (?, ?)"
            f" ON CONFLICT(path) DO UPDATE SET kind = excluded.kind WHERE kind = '{REMOVED}'",
            stored := disk.stored_root(self._gallery, root),
        )
        return int(self._one("SELECT number FROM roots WHERE path = ?", stored.path))

    def roots(self) -> dict[int, Root]:
        """Every root by number."""
        rows = self.sql.execute("SELECT number, path, kind FROM roots WHERE kind <> ?", (REMOVED,))
        return {number: disk.root_at(self._gallery, Root(path, kind)) for number, path, kind in rows}

    def name_from_here(self) -> None:
        """Name what lies in the gallery from there, as an older eyespot did not; also where it was moved since."""
        for number, path, kind in self.sql.execute("SELECT * FROM roots WHERE path NOT LIKE './%'").fetchall():
            here = {"list": f"{disk.FACTS}/{os.path.basename(path)}", "folder": "uploads"}.get(kind, "")
            above = Path(path.removesuffix(f"/{here}"))
            was_here = str(above) != path and (kind == "list" or not above.exists() or (above / disk.HEADER).exists())
            place = str(self._gallery.absolute() / here) if was_here and (self._gallery / here).exists() else path
            stored = disk.stored_root(self._gallery, Root(place, kind))
            if stored.kind == disk.FACTS:
                self.remove_root(number)  # photos are known by their own places, not by what speaks of them
                self.add_root(stored)
            elif stored.path != path:
                self.sql.execute("UPDATE OR IGNORE roots SET path = ? WHERE number = ?", (stored.path, number))

    def remove_root(self, number: int) -> int:
        """Take a root and its files out; how many pictures lay nowhere else.

        Its row stays, so that no later root gets its number while tables of facts still name it.
        """
        inside = "folder IN (SELECT number FROM folders WHERE root = ?)"
        alone = self._one(
            f"SELECT count(DISTINCT item) FROM paths WHERE {inside} AND {HAS_ROW} AND NOT EXISTS (SELECT 1 FROM"
            " paths other JOIN folders d ON d.number = other.folder WHERE other.item = paths.item AND d.root <> ?)",
            number,
            number,
        )
        with self.transaction():
            self.sql.execute(f"{STALE} WHERE {inside} AND {HAS_ROW}", (number,))
            self.sql.execute(f"DELETE FROM paths WHERE {inside}", (number,))
            for table in ("folders", "labels", "problems", "plan", "visits"):
                self.sql.execute(f"DELETE FROM {table} WHERE root = ?", (number,))
            self.sql.execute("UPDATE roots SET kind = ? WHERE number = ?", (REMOVED, number))
            self.sql.execute("DELETE FROM tallies")
            self.forget_numbers()
        return int(alone)

    # -- scanning -------------------------------------------------------------------------------------------

    def begin_visits(self) -> None:
        """Forget what earlier visits saw."""
        self._visited = {}
        for table in visits.TABLES:
            self.sql.execute(f"DELETE FROM temp.{table}")

    def visit(self, number: int, root: Root, skipped: SkippedFiles | None = None) -> visits.RootComparison:
        """Compare a root with what is known of it; problems and labels are adopted, files are for `make_plan`."""
        self._visited[number] = time.time_ns()
        comparison = visits.RootComparison(self.sql, number, root)
        self.sql.execute("BEGIN")  # a state of the ledger to read from; nobody waits for it
        try:
            is_known = video_frames.known_files(self.sql, number)
            is_facts, left = root.kind == disk.FACTS, SkippedFiles() if skipped is None else skipped
            met = visits.stated_facts(self._gallery, root) if is_facts else scan_counting(root, left, is_known)
            comparison.record(met)
            comparison.finish()
        finally:
            self.sql.execute("COMMIT")
        comparison.write()
        return comparison

    def gone(self, number: int) -> tuple[int, int, int]:
        """Files of a root: all that are known, those that this run did not find there, and those found nowhere."""
        if not self.sql.execute("SELECT 1 FROM gone WHERE root = ? LIMIT 1", (number,)).fetchone():
            return 0, 0, 0
        inside = f"folder IN (SELECT number FROM folders WHERE root = ?) AND NOT {video_frames.IS_FRAME}"
        known = self._one(f"SELECT count(*) FROM paths WHERE {inside}", number)
        elsewhere = _SEEN_ELSEWHERE.format(", ".join(map(str, self._visited)))
        not_seen, lost = self.sql.execute(
            f"SELECT count(*), ifnull(sum(NOT EXISTS ({elsewhere})), 0) FROM gone JOIN paths USING(folder, name)"
            f" WHERE gone.root = ? AND gone.place >= {VIDEO}",  # frames go with their video
            (number,),
        ).fetchone()
        return int(known), int(not_seen), int(lost)

    def seen_elsewhere(self, number: int) -> int:
        """Pictures of a root that are also in one that this run has looked through."""
        elsewhere = _SEEN_ELSEWHERE.format(", ".join(map(str, self._visited)))
        inside = f"folder IN (SELECT number FROM folders WHERE root = ?) AND place >= {VIDEO}"
        return int(self._one(f"SELECT count(*) FROM paths WHERE {inside} AND EXISTS ({elsewhere})", number))

    def forget_gone(self, number: int) -> None:
        """Drop the files of a root that were not found."""
        with self.transaction():
            gone = "FROM gone WHERE root = ?"
            self.sql.execute(f"{STALE} WHERE {HAS_ROW} AND (folder, name) IN (SELECT folder, name {gone})", (number,))
            self.sql.execute(f"DELETE FROM paths WHERE (folder, name) IN (SELECT folder, name {gone})", (number,))
            self.sql.execute("DELETE FROM tallies")
            self.sql.execute(f"DELETE {gone}", (number,))

    def forget_unsourced(self) -> None:
        """Let the next visit read pictures again whose date or position has no source: an older eyespot read them.

        With them go pictures without a date, which it looked for in fewer places.
        """
        facts = {DATE_SOURCE: "taken", POSITION_SOURCE: "latitude"}
        old = " OR ".join(
            f"({fact} IS NOT NULL AND json_extract(more, '$.{name}') IS NULL)" for name, fact in facts.items()
        )
        if not self.sql.execute(f"SELECT 1 FROM pictures WHERE {old} LIMIT 1").fetchone():
            return
        photos = f"item IN (SELECT number FROM pictures WHERE {old} OR taken IS NULL) AND place > {VIDEO}"
        with self.transaction():
            self.sql.execute(
                f"UPDATE pictures SET format = NULL WHERE number IN (SELECT item FROM paths WHERE {photos})"
            )
            self.sql.execute(f"UPDATE paths SET mtime = {RETRY} WHERE {photos}")

    # -- planning -------------------------------------------------------------------------------------------

    def make_plan(
        self, shard_rows: int | None, retry_failed: bool, encoders: Mapping[str, Encoder] | None = None
    ) -> None:
        """Deal what is new or changed in the visits of this run into shards; on `retry_failed`, what failed too.

        Shards have `shard_rows` rows; if None, by the size of the job, and as many or more as the encoders ask for.
        """
        if retry_failed:
            among = ", ".join(map(str, self._visited))
            self.sql.execute(
                "INSERT OR IGNORE INTO changed SELECT d.root, d.path || name, size, mtime, place FROM paths"
                f" JOIN folders d ON d.number = folder WHERE failed IS NOT NULL AND d.root IN ({among}) AND NOT EXISTS"
                " (SELECT 1 FROM gone g WHERE g.root = d.root AND g.path = d.path || paths.name)"
            )
        count = self._one("SELECT count(*) FROM changed")
        if not count:
            return
        from eyespot.photos.decode_processes import least_rows

        # Small shards for small jobs, so that a kill costs little; large ones for large jobs, so that few are opened
        rows = shard_rows or max(least_rows(encoders or {}), min(8192, 1 << max(count // 64, 1).bit_length()))
        first = self.free_shard()
        with self.transaction():
            self.sql.execute(
                "INSERT INTO plan SELECT ? + (upto - 1) / ?, n, root, path, size, mtime, place FROM"
                " (SELECT row_number() OVER pictures - 1 AS n, sum(iif(place = ?, ?, 1)) OVER pictures AS upto,"
                " root, path, size, mtime, place FROM changed WINDOW pictures AS (ORDER BY root, path))",
                (first, rows, VIDEO, min(video_frames.WEIGHT, rows)),
            )
            self.sql.executemany("INSERT OR REPLACE INTO visits VALUES (?, ?)", self._visited.items())

    def free_shard(self) -> int:
        """The first number above every shard that is there or planned."""
        tables = " UNION ALL ".join(f"SELECT max(shard) n FROM {table}" for table in ("spans", "plan", "imported"))
        known = int(self._one(f"SELECT ifnull(max(n), -1) FROM ({tables})"))
        return 1 + max(known, disk.last_number(self._gallery))  # a segment has the numbers of all its shards

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

    def record(self, shard: int, outcomes: Sequence[ReadPicture], new: Mapping[str, dict[str, Any]]) -> None:
        """Take down a shard's outcomes and its new rows, and strike it from the plan; call inside a transaction.

        `new` maps the ids of the rows, in order, to what was measured of each picture.
        """
        numbers = self.add_pictures(shard, new)
        reached = [one.planned for one in outcomes if not one.out_of_reach]
        video_frames.drop_frames(self.sql, [(root, seen.path) for _, root, seen in reached if seen.offset == VIDEO])
        rows, items = [], set()
        for one in outcomes:
            (_, root, seen), id = one.planned, one.id
            folder, name = self.folder(root, (parts := split(seen.path))[0]), parts[1]
            before = self.sql.execute("SELECT item FROM paths WHERE folder = ? AND name = ?", (folder, name)).fetchone()
            number = None if id is None else numbers.get(id) or self.number_of(id)
            item: Any = number if number is not None or id is None else packed(id)  # a video has no number
            if one.out_of_reach:  # where it lay is known by its old picture
                item = before[0] if before else None
            items |= {item} if id not in numbers else set()
            items |= set(before or ())
            mtime = RETRY if one.out_of_reach else seen.mtime
            rows.append((folder, name, seen.size, mtime, seen.offset, item, one.failed))
        self.sql.executemany("INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        numbered = ((item,) for item in items if isinstance(item, int))
        self.sql.executemany(f"INSERT OR IGNORE INTO stale {SHARD_OF.format('?')[1:-1]}", numbered)
        self.sql.execute("DELETE FROM stale WHERE shard = ?", (shard,))
        self.sql.execute("DELETE FROM plan WHERE shard = ?", (shard,))
        self.sql.execute("DELETE FROM tallies")

    def known_file(self, root: int, path: str) -> Seen | None:
        """A file as it was when it was last read; None for one that is not known."""
        folder, name = split(path)
        row = self.sql.execute(
            "SELECT size, mtime, place FROM paths WHERE name = ? AND folder ="
            " (SELECT number FROM folders WHERE root = ? AND path = ?)",
            (name, root, folder),
        ).fetchone()
        return None if row is None else Seen(path, *row)

    def stale_shards(self) -> list[int]:
        """Shards whose facts changed since their table was written."""
        return [n for (n,) in self.sql.execute("SELECT shard FROM stale ORDER BY shard")]

    def refreshed(self, shard: int) -> None:
        """The shard's table has been written again."""
        self.sql.execute("DELETE FROM stale WHERE shard = ?", (shard,))

    def imported_rows(self) -> dict[int, int]:
        """How many rows each imported shard has, by the number that it came with."""
        return dict(self.sql.execute("SELECT shard, rows FROM imported ORDER BY shard").fetchall())

    def known_shards(self) -> set[int]:
        """Shards that hold rows, that are planned, or whose vectors others computed."""
        query = "SELECT shard FROM spans UNION SELECT shard FROM plan UNION SELECT shard FROM imported"
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
        pictures, paths = self._tally("all", f"SELECT count(DISTINCT item), count(item) FROM paths WHERE {HAS_ROW}")
        return imported + pictures, imported + paths

    def counts_in(self, roots: Iterable[int]) -> tuple[int, int]:
        """Pictures that were read in these roots, and paths that lead to them."""
        among = ", ".join(map(str, sorted(roots)))
        inside = f"folder IN (SELECT number FROM folders WHERE root IN ({among}))"
        query = "SELECT count(DISTINCT item), count(item) FROM paths"
        return self._tally(f"({among})", f"{query} WHERE failed IS NULL AND place > {VIDEO} AND {inside}")

    def _tally(self, roots: str, query: str) -> tuple[int, int]:
        """Two counts over all paths, which are counted once for each state of them."""
        known = self.sql.execute("SELECT pictures, paths FROM tallies WHERE roots = ?", (roots,)).fetchone()
        if known is None:
            known = self.sql.execute(query).fetchone()
            with suppress(sqlite3.OperationalError):  # an index that is only read
                self.sql.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?, ?)", (roots, *known))
        return int(known[0]), int(known[1])
