"""The perceptual hashes of the pictures of a shard, `hashes.u64` beside its vectors: eight numbers for each row.

The file is plain numbers of 64 bits, little-endian, row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.groups.near_duplicates import Hashes
from eyespot.storage.digests import damaged_at_a_glance, new_digested

HASHES = "hashes.u64"
FORMS = 8  # upright, turned and mirrored


def write_hashes(shard: Path, hashes: Sequence[Sequence[int]]) -> None:
    """Put the hashes of all rows in place, (rows, 8); zeros for a picture without a pattern or out of reach."""
    with new_digested(shard / HASHES) as file:
        file.write(np.array(hashes, "<u8").tobytes())


def lacks_hashes(shard: Path) -> bool:
    """Whether a shard has none: an older eyespot indexed it, or its vectors were imported."""
    return not (shard / HASHES).exists()


def read_hashes(shard: Path, rows: int) -> Hashes:
    """The hashes of a shard, (rows, 8); zeros, which are close to nothing, where there are none or they are damaged."""
    return read_numbers(shard / HASHES, (rows, FORMS), np.zeros((), "<u8"))


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
