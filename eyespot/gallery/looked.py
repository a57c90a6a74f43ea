"""What an indexing run found in the roots that it looked through."""

from __future__ import annotations

from dataclasses import dataclass, field

from eyespot.gallery.photos.kinds import PICTORIAL, SkippedFiles
from eyespot.gallery.photos.raw import RAW_SUFFIXES


@dataclass
class Looked:
    """What a run found in the roots it looked through: pictures, paths that lead to them, failures, other files."""

    pictures: int = 0
    paths: int = 0
    failures: int = 0
    skipped: SkippedFiles = field(default_factory=SkippedFiles)

    @property
    def files(self) -> int:
        """All that lies there, but what was left out: hidden files, thumbnails, caches."""
        return self.paths + self.failures + self.skipped.files

    @property
    def copies(self) -> int:
        """Paths to a picture that another path has already led to."""
        return self.paths - self.pictures

    @property
    def pictorial(self) -> int:
        """Files that show something: pictures, also those that failed, RAW photos, videos, drawings."""
        return self.paths + self.failures + sum(self.skipped.files_of(kind) for kind in PICTORIAL)

    @property
    def by_extra(self) -> dict[str, int]:
        """How many more files each extra that is not installed would let eyespot read."""
        more = {"raw": sum(self.skipped.counts["RAW", ending] for ending in RAW_SUFFIXES)}
        return {extra: files for extra, files in more.items() if files}
