"""The ledger for questions only: on a disk that cannot be written, and while another eyespot writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from eyespot.gallery import disk
from eyespot.gallery.index_db import Ledger
from eyespot.gallery.photos.places import Root
from eyespot.storage import sqlite
from eyespot.types import EyespotError


class NoLedger(EyespotError):
    """There is no ledger, or a run was killed before it was made."""


class ReadOnlyLedger(Ledger):
    """A ledger that gives answers and changes nothing."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self.sql = sql


@contextmanager
def reading(gallery: Path) -> Iterator[ReadOnlyLedger]:
    """The gallery's ledger. Raises `NoLedger` if it is missing or empty, `DamagedLedger` if it is that."""
    place = gallery / "ledger.sqlite"
    if not place.exists():
        raise NoLedger(f"{place} is missing; make it again with: eyespot index -g {gallery}")
    try:
        with sqlite.whole(place), closing(sqlite.connect_to_read(place)) as sql:
            if not {"roots", "files", "problems"} <= sqlite.table_names(sql):
                raise NoLedger(f"{place} is empty; make it again with: eyespot index -g {gallery}")
            yield ReadOnlyLedger(sql)
    except sqlite3.DatabaseError as error:
        raise EyespotError(
            f"{place} cannot be read ({error}); end what holds it, or give yourself the right to read the gallery"
        ) from error


def known_roots(gallery: Path) -> list[Root]:
    """What a run without paths would look through; none if there is no gallery yet."""
    roots = list(disk.read_or_rebuild_header(gallery).roots.values())
    with suppress(NoLedger, sqlite.DamagedLedger), reading(gallery) as known:
        roots += known.roots().values()
    return [root for root in dict.fromkeys(roots) if root.kind != "import"]
