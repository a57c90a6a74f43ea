"""The perceptual hashes of the pictures of a shard, `hashes.u64` beside its vectors: nine numbers for each row.

Eight are the hashes of the picture upright, turned and mirrored; the bytes of the ninth are its colours. The highest
bits of the first two say of what kind it is (`photos/hashes.py`); an older eyespot left them 0.
The file is plain numbers of 64 bits, little-endian, row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.photos.hashes import COLUMNS, FORMS, PLAIN, STROKES, Hashes
from eyespot.storage.digests import damaged_at_a_glance, new_digested

HASHES = "hashes.u64"


def write_hashes(shard: Path, hashes: Sequence[Sequence[int]]) -> None:
    """Put the numbers of all rows in place, (rows, 9); zeros for a picture without a pattern or out of reach."""
    with new_digested(shard / HASHES) as file:
        file.write(np.array(hashes, "<u8").reshape(-1, COLUMNS).tobytes())


def lacks_hashes(shard: Path) -> bool:
    """Whether a shard has none: an older eyespot indexed it, or its vectors were imported."""
    return not (shard / HASHES).exists()


def read_hashes(shard: Path, rows: int) -> tuple[Hashes, NDArray[np.uint8], NDArray[np.uint8]]:
    """The hashes of a shard, (rows, 8), its colours, (rows, 8), and the kinds of its pictures, (rows,).

    Zeros, which are close to nothing, where there are none or they are damaged.
    """
    numbers = read_numbers(shard / HASHES, (rows, COLUMNS), np.zeros((), "<u8"))
    colours = np.ascontiguousarray(numbers[:, FORMS:]).view(np.uint8)
    kinds = ((numbers[:, :2] >> np.uint64(63)) @ np.array([PLAIN, STROKES], np.uint64)).astype(np.uint8)
    return numbers[:, :FORMS] & np.uint64((1 << 63) - 1), colours, kinds


def read_numbers(place: Path, shape: tuple[int, int], other: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a file of a shard in this shape and of the type of `other`, which fills it where they are not.

    A shape that begins with -1 is of as many rows as there are.
    """
    if place.exists() and not damaged_at_a_glance(place.parent, [place.name]):
        with suppress(OSError):
            numbers = np.fromfile(place, other.dtype)
            if (shape[0] < 0 and not numbers.size % shape[1]) or numbers.size == shape[0] * shape[1]:
                return numbers.reshape(shape)
    return np.full((max(shape[0], 0), shape[1]), other)
