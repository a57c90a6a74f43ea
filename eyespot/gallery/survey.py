"""What an index run found in the roots that it visited, and what one would find, counted without writing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.gallery.facts import misdated
from eyespot.gallery.items_table import read_items
from eyespot.gallery.reading import NoPictureIndex, reading
from eyespot.gallery.video_frames import VideoCounts
from eyespot.photos.found import Seen, Unreadable
from eyespot.photos.kinds import PICTORIAL, RAW_SUFFIXES, SkippedFiles
from eyespot.photos.places import Root
from eyespot.photos.provenance import DATE_SOURCE
from eyespot.photos.sources import scan_counting
from eyespot.photos.videos.addresses import VIDEO_SUFFIXES, reads_video
from eyespot.types import EyespotError, Note, quantity


@dataclass
class RootCounts:
    """What a run found in the roots that it visited: pictures, paths that lead to them, failures, other files."""

    pictures: int = 0
    paths: int = 0
    failures: int = 0
    away: int = 0  # paths that are gone and known all the same, for they are more than a fifth
    undated: int = 0  # pictures of the gallery of which nothing says when they were taken, and where
    unplaced: int = 0
    misdated: int = 0  # dates of a clock that nobody set, or of the future
    more_pages: int = 0  # of TIFF files after the first, which are not searched
    unsourced: int = 0  # dates of which nothing says where they are from: an older eyespot read them
    relabelled: int = 0  # pictures that were known, and whose labels or sidecars changed
    respelled: list[tuple[str, str]] = field(default_factory=list)  # in labels and sidecars, and the paths they mean
    videos: VideoCounts = field(default_factory=VideoCounts)
    skipped: SkippedFiles = field(default_factory=SkippedFiles)

    def count_unknown(self, shards: Iterable[Path]) -> list[str]:
        """Count what has no date, position or source of a date, and note dates that cannot be; damaged shards aside."""
        for shard in shards:
            with suppress(EyespotError):
                table = read_items(shard, ["live", "taken", "latitude", "pages", DATE_SOURCE])
                live = table.filter(table["live"])
                self.undated += live["taken"].null_count
                self.misdated += sum(misdated(live["taken"]))
                self.unplaced += live["latitude"].null_count
                pages = live["pages"].to_pylist() if "pages" in live.column_names else []
                self.more_pages += sum(one - 1 for one in pages if one and isinstance(one, int))  # a label is a text
                unsourced = live[DATE_SOURCE].null_count if DATE_SOURCE in live.column_names else len(live)
                self.unsourced += unsourced - live["taken"].null_count
        dates = quantity(self.misdated, "date is", "dates are")
        text = f"{dates} of a clock that nobody set, or of the future; estimates take them for none"
        return [Note("misdated", text)] if self.misdated else []

    @property
    def files(self) -> int:
        """All that lies there, but what was left out: hidden files, thumbnails, caches."""
        return self.searchable + self.failures + self.skipped.files

    @property
    def copies(self) -> int:
        """Paths to a picture or video that another path has already led to."""
        return self.paths - self.pictures + self.videos.files - self.videos.videos

    @property
    def searchable(self) -> int:
        """Files that a search can find: pictures, and videos by their frames."""
        return self.paths + self.videos.files - self.away

    @property
    def pictorial(self) -> int:
        """Files that show something: pictures, also those that failed, RAW photos, videos, drawings."""
        return self.searchable + self.failures + sum(self.skipped.files_of(kind) for kind in PICTORIAL)

    @property
    def by_extra(self) -> dict[str, int]:
        """How many more files each extra that is not installed would let eyespot read."""
        more = {"raw": sum(self.skipped.counts["RAW", ending] for ending in RAW_SUFFIXES)}
        if not reads_video():  # with it, those in tars are left
            more["video"] = sum(self.skipped.counts["video", ending] for ending in VIDEO_SUFFIXES)
        return {extra: files for extra, files in more.items() if files}


@dataclass
class PictureSurvey:
    """Pictures and their bytes; those that are new or changed, and what cannot be read or is none."""

    pictures: int = 0
    bytes: int = 0
    new: int = 0
    changed: int = 0
    unreadable: int = 0
    skipped: SkippedFiles = field(default_factory=SkippedFiles)


def survey(gallery: Path, roots: Iterable[Root]) -> PictureSurvey:
    """Scan the roots and compare with the gallery's index, if there is one."""
    counted = PictureSurvey()
    with ExitStack() as stack:
        index, numbers = None, dict[str, int]()
        with suppress(NoPictureIndex):
            index = stack.enter_context(reading(gallery))
            numbers = {root.path: number for number, root in index.roots().items()}
        for root in dict.fromkeys(roots):
            number = numbers.get(root.path)
            for record in scan_counting(root, counted.skipped):
                counted.unreadable += isinstance(record, Unreadable)
                if isinstance(record, Seen):
                    known = None if index is None or number is None else index.known_file(number, record.path)
                    counted.pictures += 1
                    counted.bytes += record.size
                    counted.new += known is None
                    counted.changed += known not in (None, record._replace(changed=0))
    return counted
