"""A shard in the making: what reading gave for each of its pictures, their vectors, and what is made of these.

Reference fingerprints are three pictures drawn by arithmetic and embedded with every space: by them `eyespot doctor`
tells whether this machine's encoder still gives the vectors the gallery was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.gallery import disk
from eyespot.gallery.picture_index import PictureIndex, StoredRow
from eyespot.gallery.view import Gallery, View
from eyespot.kernels.codes import code_files, current_codes, write_codes
from eyespot.photos.found import PlannedPicture
from eyespot.photos.hashes import COLUMNS
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, file_blake2b, rewriting, sound_digests
from eyespot.types import Encoder, EyespotError, Pixels, Progress, Vectors

if TYPE_CHECKING:  # a run that finds nothing new reads no picture
    from eyespot.photos.decode_workers import Later, Reader, ReadPicture

SIDE = 256
LENGTH = 16  # leading components: enough to compare, short enough to read


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
    outcomes: list[ReadPicture] = field(default_factory=list)
    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    measured_again: dict[str, dict[str, Any]] = field(default_factory=dict)  # of rows that are in other shards
    hashes: list[tuple[int, ...]] = field(default_factory=list)  # of the new rows

    def add(self, read: ReadPicture, is_known: Callable[[str], bool]) -> None:
        self.outcomes.append(replace(read, measured={}, pixels={}))  # without what takes memory
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
    seen = ((root, index.known_file(root, path)) for root, path in places)
    planned = [PlannedPicture(shard, root, one) for root, one in seen if one]
    found = {read.id: read.hashes for read in reader.read_all(planned, index.roots()) if read.hashes}
    return [found.get(row.id, (0,) * COLUMNS) for row in rows]


def fingerprints(encoder: Encoder) -> list[list[float]]:
    """The leading components of the vectors of a gradient, a checkerboard and rings, rounded to six digits.

    Their pixels are made of integers, and are the same on every machine.
    """
    from PIL import Image

    y, x = np.mgrid[0:SIDE, 0:SIDE]
    rings = ((x - 128) ** 2 + (y - 128) ** 2) // 512 % 2 * 255
    planes = [
        np.stack([x, y, 255 - x], axis=-1),
        np.stack([(x // 32 + y // 32) % 2 * 255] * 3, axis=-1),
        np.stack([rings, 255 - rings, y], axis=-1),
    ]
    pixels = np.stack([encoder.read(Image.fromarray(plane.astype(np.uint8))) for plane in planes])
    return [[round(float(v), 6) for v in vector[:LENGTH]] for vector in encoder.encode_pixels(pixels)]


def write_codes_of_spaces(gallery: Path, every: bool, progress: Progress, look: LookAtFiles) -> list[str]:
    """Codes for the spaces that have some already, or for every one; notes on those that get none for now."""
    opened = Gallery(gallery)
    digests = {name for shard in disk.shard_paths(gallery) for name in sound_digests(shard)}
    notes = []
    for stem, space in opened.header.spaces.items():
        if every or not digests.isdisjoint(code_files(stem)) or any(gallery.glob(f"shards/*/{stem}.match.npy")):
            try:
                write_missing_codes(opened.view(stem), progress, look)
            except EyespotError as error:  # the source of imported vectors is away, say
                notes.append(f"{space.encoder} has no codes for now: {error}")
    return notes


def write_missing_codes(view: View, progress: Progress, look: LookAtFiles = damaged_at_a_glance) -> None:
    """Make the codes that shards lack, that are out of date or look damaged, shard by shard.

    Memory does not grow with a shard. Raises OSError if the disk is full.
    """
    names = code_files(view.stem)
    for done, (shard, block) in enumerate(zip(view.shards, view.blocks, strict=True)):
        progress(f"coding {view.space.encoder}", done, len(view.shards))
        if look(shard, names) or current_codes(shard / view.stem, block) is None:
            with rewriting(shard, names) as digests:
                write_codes(block, shard / view.stem)
                digests |= {name: file_blake2b(shard / name) for name in names}
    progress(f"coding {view.space.encoder}", len(view.shards), len(view.shards))
