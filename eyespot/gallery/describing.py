"""Describing: local features of every picture of a gallery, once; a shard that is done is done.

Killed at any moment and run again, it goes on with the first shard that is not whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.gallery import disk, items_table
from eyespot.gallery.local import GONE, DescribedShard, LocalNote, new_local, read_local_note
from eyespot.gallery.view import Gallery, place_of
from eyespot.parallel import ordered_map
from eyespot.photos.found import Unreadable
from eyespot.photos.places import NotReread, reread
from eyespot.storage.locks import locked
from eyespot.storage.systems import usable_cores
from eyespot.types import Extractor, NothingFound

AHEAD = 4  # pictures read ahead by each thread
PER_IMAGE = 100


@dataclass(frozen=True)
class Describing:
    """How to describe; the defaults are those of the papers. `only`: the ids of pictures, None for all."""

    count: int = PER_IMAGE  # features a picture at most
    workers: int = field(default_factory=usable_cores)
    retry_failed: bool = False
    only: Collection[str | None] | None = None
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None


@dataclass
class DescribeSummary:
    """What a run did: `pictures` in the gallery, `described` of them now."""

    pictures: int = 0
    described: int = 0
    failures: list[Unreadable] = field(default_factory=list)


def describe(gallery: Path, extractor: Extractor, options: Describing | None = None) -> DescribeSummary:
    """Describe every picture that this extractor, with this number of features, has not described yet.

    What failed before is tried again with `retry_failed` only. Raises `UsageError` without a gallery, `NothingFound` if
    it knows the place of no picture, and `EyespotError` while another run writes to it.
    """
    opened = Gallery(gallery)
    with locked(gallery):
        return _DescribeJob(opened, extractor, options or Describing()).run()


class _DescribeJob:
    """One run of `describe` over one gallery."""

    def __init__(self, gallery: Gallery, extractor: Extractor, options: Describing) -> None:
        self.gallery, self.extractor, self.options = gallery, extractor, options
        self.note = LocalNote.of(extractor, options.count)
        # The id of each row's picture and the places where it lies; none for a picture that is gone
        self.shards: dict[Path, list[tuple[str, list[str]]]] = {}
        for shard in disk.shard_paths(gallery.path):
            items = self.shards[shard] = []
            for row in items_table.read_items(shard, ["id", "live", "roots", "paths"]).to_pylist():
                is_due = row["live"] and (options.only is None or row["id"] in options.only)
                places = zip(row["roots"], row["paths"], strict=True) if is_due else ()
                items.append((row["id"], [place_of(gallery.root(root), path) for root, path in places]))
        self.seen = 0
        self.summary = DescribeSummary(sum(bool(places) for items in self.shards.values() for _, places in items))

    def run(self) -> DescribeSummary:
        if not self.summary.pictures:
            place = self.gallery.path
            raise NothingFound(f"{place} has no pictures to describe; add some with: eyespot index PHOTOS -g {place}")
        due: dict[Path, list[int]] = {}
        for shard, items in self.shards.items():
            # All of a new shard; else pictures that came back, and what failed if that is asked
            note = read_local_note(shard, self.note.stem)
            missing = dict.fromkeys(range(len(items)), GONE) if note is None else note.missing
            again = {row for row, why in missing.items() if why == GONE or self.options.retry_failed}
            if rows := [row for row, (_, places) in enumerate(items) if places and row in again]:
                due[shard] = rows
        total = sum(map(len, due.values()))
        for shard, rows in due.items():
            self._write(shard, rows, total)
        for shard, items in self.shards.items():
            note = read_local_note(shard, self.note.stem)
            for row, why in (note.missing if note else {}).items():
                if items[row][1] and why != GONE:
                    self.summary.failures.append(Unreadable(items[row][1][0], why))
        return self.summary

    def _write(self, shard: Path, rows: Sequence[int], total: int) -> None:
        """A new set of a shard: these rows described, of the others what was known before."""
        due, items, before = set(rows), self.shards[shard], DescribedShard(shard, self.note.stem)
        with new_local(shard, self.note) as writer, ThreadPoolExecutor(self.options.workers) as pool:
            # A bounded number of pictures is in memory
            side, ahead = self.extractor.min_side, AHEAD * self.options.workers
            pictures = ordered_map(lambda item: reread(*item, side), [items[row] for row in rows], pool, ahead)
            for row in range(len(items)):
                if row not in due:
                    writer.add(before.known(row))
                    continue
                picture = next(pictures)
                if isinstance(picture, NotReread):
                    writer.add(picture.reason)
                else:
                    self.summary.described += 1
                    writer.add(self.extractor.describe(picture, self.options.count))
                self.seen += 1
                self.options.progress("describing", self.seen, total)
