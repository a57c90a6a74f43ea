"""When photos belong together: as copies of one picture, or as frames of one burst.

docs/how/duplicates.md has the error rates of the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.groups.near_duplicates import Families, Ids, hash_pairs, likely_pairs
from eyespot.kernels.rows import unit_rows
from eyespot.photos.hashes import STROKES, Hashes
from eyespot.types import Mask, Vectors

ALONE = -1
KINDS = ("copies", "burst")

CLOSE_BITS = 6  # of a copy's hash differ, turned or mirrored where that is closer
COLOURS = 12  # of 255: what a copy's colours may differ by
FAR_BITS, FAR_COSINE = 16, 0.93  # or more do, and the vectors say the same: a copy that was cropped
LEAST_COSINE = 0.85  # or they nearly do, and the full pictures agree
FRAME_SECONDS, FRAME_COSINE, FRAME_BITS = 3.0, 0.75, 10  # frames of a burst: so soon, and alike by either sign
NEXT = 3  # frames after it that a frame is compared with
CONFIRMED = 3  # pictures that each is compared with in full, those of the nearest vectors
_PAIRS = 1 << 15  # whose vectors are multiplied at once


@dataclass(frozen=True)
class Frames:
    """Photos by row: blocks of vectors, perceptual hashes and colours, (rows, 8) both, and when and how each was taken.

    kinds: 0 for what hashes and vectors tell apart, else what is compared in full, (rows,); see `photos/hashes.py`.
    seconds: NaN where it is not known. cameras: a number for each camera, `ALONE` where it is not known. same: whether
    the pictures of pairs of rows, (pairs, 2), are copies in full, (pairs,).
    """

    blocks: Sequence[Vectors]
    hashes: Hashes
    colours: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    seconds: NDArray[np.float64]
    cameras: Ids
    same: Callable[[Ids], Mask]

    @property
    def timed(self) -> Mask:
        """Whether it is known when and with which camera each was taken, (rows,)."""
        timed: Mask = (self.cameras >= 0) & np.isfinite(self.seconds)
        return timed

    def until(self, row: int) -> Frames:
        """The rows before this one."""
        columns = ("hashes", "colours", "kinds", "seconds", "cameras")
        return replace(self, **{name: getattr(self, name)[:row] for name in columns})

    def cosines(self, pairs: Ids) -> NDArray[np.float32]:
        """The cosine of each pair, (pairs,)."""
        parts = np.array_split(pairs, len(pairs) // _PAIRS + 1)
        each = [np.einsum("nd,nd->n", *(unit_rows(self.blocks, rows) for rows in part.T)) for part in parts]
        return np.concatenate(each)


def links_of(frames: Frames, since: int) -> Ids:
    """Which rows from `since` on belong to another, or make two others belong together: (links, 3).

    Each link is a row, a higher one, and the kind: 0 for copies, 1 for frames of a burst. Links over links make a
    group. They depend on nothing that comes after these rows.
    """
    if not (frames.hashes[since:, 0].any() or frames.timed[since:].any()):  # imported, without their pictures
        return np.empty((0, 3), np.int64)
    families = Families(len(frames.seconds))
    doubtful = np.empty((0, 2), np.int64)
    for pairs in hash_pairs(frames.hashes, CLOSE_BITS, since):
        doubtful = _join(families, doubtful, frames, _may_be_copies(frames, pairs))
    for found in likely_pairs(frames.hashes, FAR_BITS, since):
        pairs = _may_be_copies(frames, families.apart(np.unique(found, axis=0)))
        doubtful = _join(families, doubtful, frames, pairs, least=FAR_COSINE)
    for pair in doubtful[:, None]:
        families.join(pair[frames.same(pair)] if len(families.apart(pair)) else pair)
    copies = families.first()
    families.join(_burst_frames(frames, since))
    first = families.first()
    own = copies == np.arange(len(copies))
    copied = np.flatnonzero(~own)
    joined = np.flatnonzero(own & (first != copies))  # the first of copies that a burst joins to others
    columns = [(copies[copied], copied, np.zeros_like(copied)), (first[joined], joined, np.ones_like(joined))]
    return np.concatenate([np.stack(column, axis=1) for column in columns])


def _join(families: Families, doubtful: Ids, frames: Frames, pairs: Ids, least: float = -1) -> Ids:
    """Join pairs of photos; of pairs below the least cosine, and of pages, screens and skies, some are left to compare.

    They are the three nearest of the later row so far, and the nearest of the earlier one; the nearest come first.
    """
    cosines = frames.cosines(pairs)
    in_full = frames.kinds[pairs].any(axis=1) | (cosines < least)
    families.join(pairs[~in_full])
    pairs = np.unique(np.concatenate([doubtful, pairs[in_full & (cosines >= min(least, LEAST_COSINE))]]), axis=0)
    nearness, places = -frames.cosines(pairs), np.full(len(pairs), CONFIRMED)
    for rows, most in zip(pairs.T, (1, CONFIRMED), strict=True):
        order = np.lexsort((nearness, rows))
        place = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])  # among those of a row
        places[order] = np.where(place < most, np.minimum(place, places[order]), places[order])
    order = np.lexsort((pairs[:, 1], places))
    nearest: Ids = pairs[order[places[order] < CONFIRMED]]
    return nearest


def _may_be_copies(frames: Frames, pairs: Ids) -> Ids:
    """The pairs of one colour, without those that say two times: pictures of a fixed camera are alike for hours."""
    colours = frames.colours[pairs].astype(np.int16)  # (pairs, 2, 8)
    pairs = pairs[(np.abs(colours[:, 0] - colours[:, 1]) <= COLOURS).all(axis=1)]
    taken = frames.seconds[pairs]  # (pairs, 2)
    return pairs[~(np.abs(taken[:, 0] - taken[:, 1]) > 0)]  # a time that is not known, NaN, speaks against nothing


def _burst_frames(frames: Frames, since: int) -> Ids:
    """Pairs of frames of one camera, taken soon one after the other and alike, (pairs, 2)."""
    camera, rows = frames.cameras, np.flatnonzero(frames.timed)
    rows = rows[np.lexsort((rows, frames.seconds[rows], camera[rows]))]
    pairs = np.concatenate([np.stack([rows[:-step], rows[step:]], axis=1) for step in range(1, NEXT + 1)])
    soon = np.abs(np.diff(frames.seconds[pairs], axis=1)[:, 0]) <= FRAME_SECONDS
    pairs = np.sort(pairs[soon & (camera[pairs[:, 0]] == camera[pairs[:, 1]])], axis=1)
    pairs = pairs[pairs[:, 1] >= since]
    turned = frames.hashes[pairs[:, 0]] ^ frames.hashes[pairs[:, 1], :1]
    patterned = frames.hashes[pairs, 0].all(axis=1)  # a hash of 0 says that there is no pattern
    alike = patterned & (np.bitwise_count(turned).min(axis=1) <= FRAME_BITS)
    alike |= frames.cosines(pairs) >= FRAME_COSINE
    pages = (frames.kinds[pairs] & STROKES).any(axis=1)  # taken one after the other, and each another text
    found: Ids = pairs[alike & ~pages]
    return found
