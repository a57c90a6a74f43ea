"""The index of a gallery for questions only: on a disk that cannot be written, and while another eyespot writes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from eyespot.gallery import disk
from eyespot.gallery.index_tables import VIEW, packed
from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.video_frames import known_frames
from eyespot.photos.found import KnownPictures
from eyespot.photos.places import Root
from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.copies import INDEX
from eyespot.types import EyespotError


class NoPictureIndex(EyespotError):
    """There is no index, or a run was killed before it was made."""


class ReadOnlyIndex(PictureIndex):
    """An index that gives answers and changes nothing."""

    def __init__(self, gallery: Path, sql: sqlite3.Connection) -> None:
        self._gallery, self.sql = gallery, sql
        self.forget_numbers()


class KnownInIndex(KnownPictures):
    """What need not be decoded again, as the index of a gallery has it; many threads ask through one connection."""

    def __init__(self, gallery: Path) -> None:
        self.sql, self.turn = sqlite.connect_to_read(gallery / INDEX, VIEW), threading.Lock()

    def is_measured(self, id: str) -> bool | None:
        """Whether the row of a picture of these bytes says what was measured of it; None if it has no row.

        A row that was made again from a shard says nothing.
        """
        with self.turn:
            row = self.sql.execute("SELECT format IS NOT NULL FROM pictures WHERE id = ?", (packed(id),)).fetchone()
        return None if row is None else bool(row[0])

    def frames(self, video: str) -> list[tuple[str, int, str]]:
        """The frames of a video that the gallery knows, by its id: fragment, place and id of each."""
        with self.turn:
            return known_frames(self.sql, video)

    def close(self) -> None:
        """Let go of the index."""
        self.sql.close()


@contextmanager
def reading(gallery: Path) -> Iterator[ReadOnlyIndex]:
    """The gallery's index. Raises `NoPictureIndex` if it is missing or empty, `DamagedLedger` if it is that."""
    place = gallery / INDEX
    try:
        if place.exists():
            with sqlite.whole(place), closing(sqlite.connect_to_read(place, VIEW)) as sql:
                if {"roots", "files", "problems"} <= sqlite.table_names(sql):
                    yield ReadOnlyIndex(gallery, sql)
                    return
    except sqlite3.DatabaseError as error:
        raise EyespotError(f"{place} cannot be read {trouble(error)}") from error
    raise NoPictureIndex(f"{place} is missing or empty; make it again with: eyespot index -g {gallery}")


def known_roots(gallery: Path) -> list[Root]:
    """What a run without paths would look through; none if there is no gallery yet."""
    roots = list(disk.read_or_rebuild_header(gallery).roots.values())
    with suppress(NoPictureIndex, sqlite.DamagedLedger), reading(gallery) as known:
        roots += known.roots().values()
    return [root for root in dict.fromkeys(roots) if root.kind not in ("import", disk.FACTS)]
