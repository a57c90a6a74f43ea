"""What an index run would find, counted without writing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from eyespot.gallery.photos.sources import Record, Root, Seen, Unreadable, scan
from eyespot.gallery.reading import NoLedger, reading

_Known = Callable[[Root, str], Seen | None]
_FILE = "SELECT size, mtime, place FROM files JOIN roots ON number = root WHERE roots.path = ? AND files.path = ?"


@dataclass
class Survey:
    """Pictures and their bytes; those the gallery does not know, or knows as they were; what cannot be read."""

    pictures: int = 0
    bytes: int = 0
    new: int = 0
    changed: int = 0
    unreadable: int = 0

    def add(self, record: Record, known: Seen | None) -> None:
        """Count one thing that was met; `known` is what the gallery knows of that path."""
        self.unreadable += isinstance(record, Unreadable)
        if isinstance(record, Seen):
            self.pictures += 1
            self.bytes += record.size
            self.new += known is None
            self.changed += known not in (None, record)


def survey(gallery: Path, roots: Iterable[Root]) -> Survey:
    """Look through the roots and compare with the gallery's ledger, if there is one."""
    counted = Survey()
    with _known(gallery) as known:
        for root in dict.fromkeys(roots):
            for record in scan(root):
                counted.add(record, known(root, record.path))
    return counted


@contextmanager
def _known(gallery: Path) -> Iterator[_Known]:
    with ExitStack() as open_things:
        try:
            sql = open_things.enter_context(reading(gallery)).sql
        except NoLedger:
            yield lambda _root, _path: None
            return

        def known(root: Root, path: str) -> Seen | None:
            row = sql.execute(_FILE, (root.path, path)).fetchone()
            return None if row is None else Seen(path, *row)

        yield known
