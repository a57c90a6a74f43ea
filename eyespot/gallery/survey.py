"""What an index run would find, counted without writing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.gallery.reading import NoPictureIndex, reading
from eyespot.photos.kinds import SkippedFiles
from eyespot.photos.sources import Met, Root, Seen, Unreadable, scan_counting

_Known = Callable[[Root, str], Seen | None]


@dataclass
class PictureSurvey:
    """Pictures and their bytes; those that are new or changed, and what cannot be read or is none."""

    pictures: int = 0
    bytes: int = 0
    new: int = 0
    changed: int = 0
    unreadable: int = 0
    skipped: SkippedFiles = field(default_factory=SkippedFiles)

    @property
    def files(self) -> int:
        """All that lies there, but what was left out: hidden files, thumbnails, caches."""
        return self.pictures + self.unreadable + self.skipped.files

    def add(self, record: Met, known: Seen | None) -> None:
        """Count one thing that was met; `known` is what the gallery knows of that path."""
        self.unreadable += isinstance(record, Unreadable)
        if isinstance(record, Seen):
            self.pictures += 1
            self.bytes += record.size
            self.new += known is None
            self.changed += known not in (None, record)


def survey(gallery: Path, roots: Iterable[Root]) -> PictureSurvey:
    """Look through the roots and compare with the gallery's ledger, if there is one."""
    counted = PictureSurvey()
    with _known(gallery) as known:
        for root in dict.fromkeys(roots):
            for record in scan_counting(root, counted.skipped):
                counted.add(record, known(root, record.path))
    return counted


@contextmanager
def _known(gallery: Path) -> Iterator[_Known]:
    with ExitStack() as open_things:
        try:
            ledger = open_things.enter_context(reading(gallery))
        except NoPictureIndex:
            yield lambda _root, _path: None
            return

        numbers = {root.path: number for number, root in ledger.roots().items()}

        def known(root: Root, path: str) -> Seen | None:
            return ledger.known_file(numbers[root.path], path) if root.path in numbers else None

        yield known
