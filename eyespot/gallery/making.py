"""A shard in the making: what reading gave for each of its pictures, and their vectors, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyespot.gallery.picture_index import PictureIndex, ReadResult, StoredRow
from eyespot.photos.decode_workers import Later, Reader, ReadPicture
from eyespot.photos.found import PlannedPicture
from eyespot.photos.hashes import COLUMNS
from eyespot.types import Encoder, Pixels, Vectors


@dataclass
class Batches:
    """Pixels of one encoder, embedded a full batch at a time."""

    stem: str
    encoder: Encoder
    reader: Reader
    waiting: list[Pixels] = field(default_factory=list)
    pending: list[Later] = field(default_factory=list)

    def add(self, pixels: Pixels) -> None:
        self.waiting.append(pixels)
        if len(self.waiting) == self.encoder.batch:
            self._embed()

    def vectors(self) -> Vectors:
        """All of them, (n, dim)."""
        if self.waiting:
            self._embed()
        return np.concatenate(
            [np.zeros((0, self.encoder.space.dim), np.float32), *(result() for result in self.pending)]
        )

    def _embed(self) -> None:
        self.pending.append(self.reader.embed(self.stem, self.waiting))
        self.waiting = []


@dataclass
class ShardInMaking:
    """A shard in the making: outcomes of all its pictures, and rows for those that are good and new."""

    batches: Mapping[str, Batches]  # by the stems of their spaces
    outcomes: list[ReadResult] = field(default_factory=list)
    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    measured_again: dict[str, dict[str, Any]] = field(default_factory=dict)  # of rows that are in other shards
    hashes: list[tuple[int, ...]] = field(default_factory=list)  # of the new rows

    def add(self, read: ReadPicture, is_known: Callable[[str], bool]) -> None:
        self.outcomes.append(ReadResult(read.planned, read.id, read.failed, read.out_of_reach))
        # Asked again here: a shard that was committed since the picture was read ahead may hold the same bytes.
        if read.id is None or not read.measured or read.id in self.measured:
            return
        if is_known(read.id):
            self.measured_again[read.id] = read.measured
            return
        self.measured[read.id] = read.measured
        self.hashes.append(read.hashes)
        for stem, batches in self.batches.items():
            batches.add(read.pixels[stem])


def hashes_again(index: PictureIndex, shard: int, rows: Sequence[StoredRow], reader: Reader) -> list[tuple[int, ...]]:
    """The perceptual hashes of these rows of a shard, read anew; zeros where no path holds the picture any more."""
    places = (place for row in rows for place in zip(row.roots, row.paths, strict=True))
    planned = [PlannedPicture(shard, root, index.seen(root, path)) for root, path in places]
    found = {read.id: read.hashes for read in reader.read_all(planned, index.roots()) if read.hashes}
    return [found.get(row.id, (0,) * COLUMNS) for row in rows]
