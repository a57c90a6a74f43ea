"""The index of a gallery for questions only: on a disk that cannot be written, and while another eyespot writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from eyespot.gallery import disk
from eyespot.gallery.index_file import INDEX, file_to_read
from eyespot.gallery.older_ledgers import is_older
from eyespot.gallery.picture_index import PictureIndex
from eyespot.photos.found import Seen
from eyespot.photos.places import Root
from eyespot.photos.videos.addresses import VIDEO
from eyespot.storage import sqlite
from eyespot.types import EyespotError


class NoPictureIndex(EyespotError):
    """There is no ledger, or a run was killed before it was made."""


class ReadOnlyIndex(PictureIndex):
    """A ledger that gives answers and changes nothing."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self.sql = sql
        self.forget_numbers()

    def _keep_tally(self, roots: str, counted: tuple[int, int]) -> None:
        """It is for the next question only."""


class OlderLedger(ReadOnlyIndex):
    """One that no run of today has taken over yet: `files` is a table in it, and `items` has the rows."""

    def known_file(self, root: int, path: str) -> Seen | None:
        """A file as it was when it was last read; None for one that is not known."""
        query = "SELECT size, mtime, place FROM files WHERE root = ? AND path = ?"
        row = self.sql.execute(query, (root, path)).fetchone()
        return None if row is None else Seen(path, *row)

    def shard_rows(self) -> dict[int, int]:
        """How many rows each shard of scanned pictures has, in order."""
        return dict(self.sql.execute("SELECT shard, count(*) FROM items GROUP BY shard ORDER BY shard").fetchall())

    def known_shards(self) -> set[int]:
        """Shards that hold rows, that are planned, or whose vectors others computed."""
        query = "SELECT shard FROM items UNION SELECT shard FROM plan UNION SELECT shard FROM imported"
        return {shard for (shard,) in self.sql.execute(query)}

    def _tally(self, roots: str, query: str) -> tuple[int, int]:
        query = f"SELECT count(DISTINCT id), count(id) FROM files WHERE place <> {VIDEO}"
        pictures, paths = self.sql.execute(query).fetchone()
        return pictures, paths


@contextmanager
def reading(gallery: Path) -> Iterator[ReadOnlyIndex]:
    """The gallery's index. Raises `NoPictureIndex` if it is missing or empty, `DamagedLedger` if it is that."""
    place = file_to_read(gallery)
    if not place.exists():
        raise _no_index(gallery)
    try:
        with sqlite.whole(place), closing(sqlite.connect_to_read(place)) as sql:
            if place.name != INDEX:
                sql.execute("BEGIN")  # a run that moves the index takes nothing away from this answer
            if {"roots", "files", "problems"} <= sqlite.table_names(sql):
                yield OlderLedger(sql) if is_older(sql) else ReadOnlyIndex(sql)
                return
    except sqlite3.DatabaseError as error:
        raise EyespotError(
            f"{place} cannot be read ({error}); end what holds it, or give yourself the right to read the gallery"
        ) from error
    if place == file_to_read(gallery):
        raise _no_index(gallery)
    with reading(gallery) as moved:  # while this one was opened
        yield moved


def _no_index(gallery: Path) -> NoPictureIndex:
    return NoPictureIndex(f"{gallery / INDEX} is missing or empty; make it again with: eyespot index -g {gallery}")


def known_roots(gallery: Path) -> list[Root]:
    """What a run without paths would look through; none if there is no gallery yet."""
    roots = list(disk.read_or_rebuild_header(gallery).roots.values())
    with suppress(NoPictureIndex, sqlite.DamagedLedger), reading(gallery) as known:
        roots += known.roots().values()
    return [root for root in dict.fromkeys(roots) if root.kind != "import"]
