"""When photos belong together: as copies of one picture, or as frames of one burst.

The limits are measured by `bench/groups.py`; docs/duplicates.md has the error rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.groups.near_duplicates import Families, Hashes, Ids, hash_pairs, vector_pairs
from eyespot.kernels.kmeans import KMeans, cluster
from eyespot.types import Mask, Progress, Vectors, no_progress

ALONE = -1
KINDS = ("copies", "burst")

CLOSE_BITS = 6  # of a copy's hash differ, turned or mirrored where that is closer
FAR_BITS, FAR_COSINE = 16, 0.93  # or more do, and the vectors say the same: a copy that was cropped
FRAME_SECONDS, FRAME_COSINE, FRAME_BITS = 3.0, 0.75, 10  # frames of a burst: so soon, and alike by either sign
NEXT = 3  # frames after it that a frame is compared with
CELL = 2_000  # rows whose vectors are compared with each other, where there are many more
_PAIRS = 1 << 15  # whose vectors are multiplied at once


@dataclass(frozen=True)
class Frames:
    """Photos by row: blocks of vectors, perceptual hashes (rows, 8), when taken in seconds, and with which camera.

    seconds: NaN where it is not known. live: the rows that count, (rows,).
    """

    blocks: Sequence[Vectors]
    hashes: Hashes
    seconds: NDArray[np.float64]
    cameras: Sequence[str | None]
    live: Mask

    @cached_property
    def starts(self) -> Ids:
        """The first row of each block, and the count of all at the end."""
        return np.cumsum([0, *(len(block) for block in self.blocks)])

    def vectors(self, rows: Ids) -> Vectors:
        """The vectors of these rows in float32 and of unit length, (rows asked for, dim)."""
        dim = self.blocks[0].shape[1] if self.blocks else 0
        found: Vectors = np.zeros((len(rows), dim), np.float32)
        where = np.searchsorted(self.starts, rows, side="right") - 1
        for block in np.unique(where).tolist():
            found[where == block] = self.blocks[block][rows[where == block] - self.starts[block]]
        unit: Vectors = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return unit

    def cosines(self, pairs: Ids) -> NDArray[np.float32]:
        """The cosine of each pair, (pairs,)."""
        parts = np.array_split(pairs, len(pairs) // _PAIRS + 1)
        each = [np.einsum("nd,nd->n", self.vectors(part[:, 0]), self.vectors(part[:, 1])) for part in parts]
        return np.concatenate(each)

    def apart(self, pairs: Ids) -> NDArray[np.int64]:
        """In how many bits the hashes of each pair differ, turned and mirrored where that is closer, (pairs,)."""
        turned = self.hashes[pairs[:, 0]] ^ self.hashes[pairs[:, 1], :1]
        both: Mask = self.hashes[pairs, 0].all(axis=1)  # a hash of 0 says that there is no pattern
        return np.where(both, np.bitwise_count(turned).min(axis=1), 64)


def groups_of(frames: Frames, progress: Progress = no_progress) -> Ids:
    """For each row the lowest row of its group and its kind, (rows, 2); -1 for a row that is in no group.

    Copies are found first. A group is a burst if anything but copies joins it.
    """
    families = Families(len(frames.live))
    for done, pairs in enumerate(_copies(frames)):
        families.join(pairs)
        progress("looking for copies", done, 0)
    copies = families.first()
    families.join(_burst_frames(frames))
    first = families.first()
    lowest, counts = np.unique(first, return_counts=True)
    grouped = np.isin(first, lowest[counts > 1]) & frames.live
    kinds = np.isin(first, first[copies != first]).astype(np.int64)
    return np.where(grouped[:, None], np.stack([first, kinds], axis=1), ALONE)


def _copies(frames: Frames) -> Iterator[Ids]:
    """Pairs of copies, some at a time, each once or more often."""
    live = np.flatnonzero(frames.live)
    for found in hash_pairs(np.where(frames.live[:, None], frames.hashes, np.uint64(0)), CLOSE_BITS):
        yield _may_be_copies(frames, found)
    for rows in _cells(frames, live):
        for found in vector_pairs(frames.vectors(rows), FAR_COSINE):
            pairs = _may_be_copies(frames, rows[found])
            yield pairs[frames.apart(pairs) <= FAR_BITS]


def _may_be_copies(frames: Frames, pairs: Ids) -> Ids:
    """The pairs without those that say two times: pictures of a fixed camera are alike for hours."""
    taken = frames.seconds[pairs]  # (pairs, 2)
    return pairs[~(np.abs(taken[:, 0] - taken[:, 1]) > FRAME_SECONDS)]


def _cells(frames: Frames, live: Ids) -> Iterator[Ids]:
    """Rows to compare with each other: all, or of many rows those that lie near the same centroid."""
    if len(live) <= 10 * CELL:
        yield live
        return
    vectors = frames.vectors(live)
    made = cluster(vectors, KMeans(len(live) // CELL, iterations=4, unit=True, sample=64 * (len(live) // CELL)))
    order = np.argsort(made.labels, kind="stable")
    yield from np.split(live[order], np.flatnonzero(np.diff(made.labels[order])) + 1)


def _burst_frames(frames: Frames) -> Ids:
    """Pairs of frames of one camera, taken soon one after the other and alike, (pairs, 2)."""
    codes = {camera: code for code, camera in enumerate(sorted({c for c in frames.cameras if c}))}
    camera = np.array([codes.get(name or "", ALONE) for name in frames.cameras], np.int64)
    rows = np.flatnonzero(frames.live & (camera >= 0) & np.isfinite(frames.seconds))
    rows = rows[np.lexsort((rows, frames.seconds[rows], camera[rows]))]
    pairs = np.concatenate([np.stack([rows[:-step], rows[step:]], axis=1) for step in range(1, NEXT + 1)])
    soon = np.abs(np.diff(frames.seconds[pairs], axis=1)[:, 0]) <= FRAME_SECONDS
    pairs = np.sort(pairs[soon & (camera[pairs[:, 0]] == camera[pairs[:, 1]])], axis=1)
    alike = (frames.cosines(pairs) >= FRAME_COSINE) | (frames.apart(pairs) <= FRAME_BITS)
    return pairs[alike]
