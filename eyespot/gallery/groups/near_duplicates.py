"""Near-duplicates: pictures that are copies of each other, resized, recompressed, turned, mirrored or lightly changed.

Two signs are looked at: perceptual hashes (`photos/hashes.py`), and the cosine of two embeddings, which also recognises
a copy that was cropped, tilted or written on; with a low limit it takes pictures of one thing for copies, too.

In a shard's `hashes.u64` (docs/how/layout.md) the highest bits of the first two numbers say of what kind a picture is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.photos.hashes import COLUMNS, FORMS, PLAIN, STROKES, Hashes
from eyespot.storage.digests import damaged_at_a_glance, new_digested
from eyespot.types import UsageError, Vectors

Ids = NDArray[np.int64]

HASHES = "hashes.u64"
BITS = 64
_BANDS, _BAND = 4, 16  # a hash is looked up by its quarters
_MOST_BITS = 11  # with more, quarters would be looked up at 3 bits' distance, 697 times each
_TABLES = 16
_AT_ONCE = 1 << 22  # pairs, or cosines


@dataclass(frozen=True)
class Near:
    """Which pairs are near-duplicates: hashes that differ in at most `bits` of 64, or a cosine of at least `cosine`."""

    bits: int = 8
    cosine: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= _MOST_BITS:
            raise UsageError(f"hashes may differ in 0 to {_MOST_BITS} of {BITS} bits, not in {self.bits}")
        if not self.cosine >= -1:
            raise UsageError(f"a cosine is -1 or more, not {self.cosine}")


@dataclass(frozen=True)
class DuplicatePair:
    """Two pictures by their rows, the lower one first; in how many bits their hashes differ, and their cosine."""

    first: int
    second: int
    bits: int
    cosine: float


def near_duplicates(hashes: Hashes, vectors: Vectors, how: Near) -> list[DuplicatePair]:
    """All near-duplicate pairs, in the order of their rows.

    `hashes` (pictures, 8) are looked up by quarters, so that few pairs are compared; `vectors` (pictures, dim), of
    unit length, are multiplied block by block, in time with the square of their number (100,000 of 512 dimensions: a
    minute or two). With a cosine above 1 only hashes count, and `vectors` may have no dimensions.
    """
    if len(hashes) != len(vectors):
        raise UsageError(f"{len(hashes)} pictures have hashes and {len(vectors)} have vectors; give both for all")
    found = [close_hashes(hashes, how.bits), *([close_vectors(vectors, how.cosine)] if how.cosine <= 1 else [])]
    rows = np.unique(np.concatenate(found), axis=0)
    pairs: list[DuplicatePair] = []
    for start in range(0, len(rows), 4096):
        first, second = rows[start : start + 4096].T
        bits = np.bitwise_count(hashes[first] ^ hashes[second, :1]).min(axis=1)
        cosines = np.einsum("nd,nd->n", vectors[first], vectors[second])
        columns = (column.tolist() for column in (first, second, bits, cosines))
        pairs += (DuplicatePair(*values) for values in zip(*columns, strict=True))
    return pairs


def first_of_family(pairs: list[DuplicatePair], pictures: int) -> Ids:
    """For each picture the lowest row it is joined with, over any number of pairs, (pictures,); its own if none.

    The rows where `first_of_family(pairs, n) == arange(n)` are one of each family.
    """
    families = Families(pictures)
    families.join(np.array([(pair.first, pair.second) for pair in pairs], np.int64).reshape(-1, 2))
    return families.first()


class Families:
    """Rows that are joined over any number of pairs; the lowest row of a family stands for it."""

    def __init__(self, rows: int) -> None:
        self._above = np.arange(rows)  # a row of the same family that is no higher, its own at the top

    def join(self, pairs: Ids) -> None:
        """Put the families of the two rows of each pair together; (pairs, 2), in any order, repeated or not."""
        tops = np.sort(self._tops(pairs), axis=1)
        for low, high in sorted({(low, high) for low, high in tops.tolist() if low < high}):
            ends = sorted((_top(self._above, low), _top(self._above, high)))
            self._above[ends[1]] = ends[0]

    def apart(self, pairs: Ids) -> Ids:
        """The pairs whose rows are in two families so far."""
        tops = self._tops(pairs)
        apart: Ids = pairs[tops[:, 0] != tops[:, 1]]
        return apart

    def _tops(self, rows: Ids) -> Ids:
        """The lowest row of the family of each of some rows; takes no time for the millions of others."""
        tops = self._above[rows]
        while not np.array_equal(higher := self._above[tops], tops):
            highest = self._above[higher]
            self._above[tops], tops = highest, highest
        return tops

    def first(self) -> Ids:
        """For each row the lowest row of its family, (rows,)."""
        return self._tops(np.arange(len(self._above)))


def close_hashes(hashes: Hashes, bits: int) -> Ids:
    """Pairs of rows, the lower first, one of whose forms differs in at most `bits` from the other upright, (pairs, 2).

    None is missed: hashes that differ in at most `bits` have a quarter that differs in at most a quarter of `bits`.
    A hash of 0 says that there is no pattern, and is close to nothing.
    """
    pairs: Ids = np.unique(np.concatenate([np.empty((0, 2), np.int64), *hash_pairs(hashes, bits)]), axis=0)
    return pairs


def hash_pairs(hashes: Hashes, bits: int, since: int = 0) -> Iterator[Ids]:
    """The same pairs some at a time, in no order, and each once or more often: thousands of frames may be alike.

    The higher row of each pair is `since` or above.
    """
    rows, upright = _patterned(hashes)
    probes = np.flatnonzero(rows >= since)
    forms = hashes[rows[probes]]
    # All numbers of a band's width with at most a quarter of `bits` set
    sets = (some for count in range(bits // _BANDS + 1) for some in combinations(range(_BAND), count))
    flips = [sum(1 << bit for bit in some) for some in sets]
    for shift in range(0, BITS, _BAND):
        for form, others in _same_keys([_band(forms.ravel(), shift) ^ flip for flip in flips], _band(upright, shift)):
            near = np.bitwise_count(forms.ravel()[form] ^ upright[others]) <= bits
            yield _ordered(rows[probes[form[near] // forms.shape[1]]], rows[others[near]])


def likely_pairs(hashes: Hashes, bits: int, since: int = 0) -> Iterator[Ids]:
    """As `hash_pairs` of upright forms alone, for more bits; most pairs are found, and fewer the more they differ.

    Each of some tables finds the pairs that agree in 8 drawn bits.
    """
    rows, upright = _patterned(hashes)
    probes = np.flatnonzero(rows >= since)
    every = np.unpackbits(upright.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)[:, 1:]  # (patterned, 63)
    draw = np.random.Generator(np.random.PCG64(0))
    for _ in range(_TABLES):
        keys = np.packbits(every[:, draw.permutation(BITS - 1)[:8]], axis=1)[:, 0].astype(np.int64)
        for form, others in _same_keys([keys[probes]], keys):
            near = np.bitwise_count(upright[probes[form]] ^ upright[others]) <= bits
            yield _ordered(rows[probes[form[near]]], rows[others[near]])


def _patterned(hashes: Hashes) -> tuple[Ids, NDArray[np.uint64]]:
    """The rows whose hash says something, and their upright hashes."""
    rows = np.flatnonzero(hashes[:, 0])
    return rows, np.ascontiguousarray(hashes[rows, 0])


def _same_keys(wanted: list[Ids], keys: Ids) -> Iterator[tuple[Ids, Ids]]:
    """Places in each list of wanted keys with places of the same key, some millions of pairs at a time."""
    ordered = np.argsort(keys.astype(np.uint16), kind="stable")  # places by their keys
    starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=2**_BAND))])  # of each key among them
    for some_wanted in wanted:
        counts = starts[some_wanted + 1] - starts[some_wanted]
        there = np.flatnonzero(counts)
        share = np.cumsum(counts[there]) // _AT_ONCE
        for some in np.split(there, np.flatnonzero(np.diff(share)) + 1):
            many = counts[some]
            within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
            yield np.repeat(some, many), ordered[np.repeat(starts[some_wanted[some]], many) + within]


def _ordered(rows: Ids, others: Ids) -> Ids:
    pairs: Ids = np.sort(np.stack([rows, others], axis=1), axis=1)
    return pairs[pairs[:, 0] < pairs[:, 1]]


def close_vectors(vectors: Vectors, cosine: float) -> Ids:
    """Pairs of rows, the lower first, whose unit vectors (n, dim) have at least this cosine, (pairs, 2)."""
    step = max(1, _AT_ONCE // max(1, len(vectors)))
    found = [np.empty((0, 2), np.int64)]
    for start in range(0, len(vectors), step):
        cosines = vectors[start : start + step] @ vectors[start:].T  # (some, rest)
        rows, others = np.nonzero(cosines >= cosine)
        found.append(np.stack([rows, others], axis=1)[rows < others] + start)
    return np.concatenate(found)


def _band(hashes: NDArray[np.uint64], shift: int) -> NDArray[np.int64]:
    return ((hashes >> np.uint64(shift)) & np.uint64(2**_BAND - 1)).astype(np.int64)


def _top(above: NDArray[Any], row: int) -> int:
    while above[row] != row:
        above[row] = above[above[row]]
        row = int(above[row])
    return row


# -- on disk ----------------------------------------------------------------------------------------------------


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
