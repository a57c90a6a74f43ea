"""What an index run would find, counted without writing anything."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.gallery.reading import NoPictureIndex, reading
from eyespot.photos.found import Met, Seen, Unreadable
from eyespot.photos.kinds import SkippedFiles
from eyespot.photos.places import Root
from eyespot.photos.sources import scan_counting


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
    """Look through the roots and compare with the gallery's index, if there is one."""
    counted = PictureSurvey()
    with ExitStack() as stack:
        index, numbers = None, dict[str, int]()
        with suppress(NoPictureIndex):
            index = stack.enter_context(reading(gallery))
            numbers = {root.path: number for number, root in index.roots().items()}
        for root in dict.fromkeys(roots):
            for record in scan_counting(root, counted.skipped):
                number = numbers.get(root.path)
                known = None if index is None or number is None else index.known_file(number, record.path)
                counted.add(record, known)
    return counted
