"""Semi-positives: for each image its nearest others, of which the first few are soft targets beside it.

A softmax over the similarities of the 100 nearest neighbours says how much each of them counts; the 2 nearest remain
with that weight (QuARI, section 3.3; the temperature 0.07 is that of the authors' code). Neighbours are distinct
images, and none is a copy of the image itself.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import Index, NearestRows, NothingFound, Progress, UsageError, Vectors


class SemiPositives(NamedTuple):
    """For each image the rows of its semi-positives (m, keep), best first, and their weights (m, keep).

    Where there are not enough others a row is -1 and its weight 0.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]

    def without(self, images: NDArray[np.int64]) -> SemiPositives:
        """Some images, by their rows, taken away: those that are held out teach nothing."""
        away = np.isin(self.rows, images)
        return SemiPositives(np.where(away, -1, self.rows), np.where(away, 0, self.weights).astype(np.float32))


@dataclass(frozen=True)
class Mining:
    """How many neighbours share the softmax, how many of them remain, how sharp it is, how many images at once."""

    neighbours: int = 100
    keep: int = 2
    temperature: float = 0.07
    piece: int = 4096

    def __post_init__(self) -> None:
        if not 1 <= self.keep <= self.neighbours or self.piece < 1:
            raise UsageError(f"of {self.neighbours} neighbours 1 or more remain, and not {self.keep}")
        if not self.temperature > 0:
            raise UsageError(f"the temperature of a softmax is above 0, not {self.temperature}")


def distinct(images: Vectors, ids: Sequence[str] | None = None) -> NDArray[np.int64]:
    """For each row the first row of the same image, (m,): by its id, else by the bytes of its vector."""
    first: dict[Any, int] = {}
    keys = ids if ids is not None else (hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in images)
    return np.fromiter((first.setdefault(key, row) for row, key in enumerate(keys)), np.int64, len(images))


def mine(images: Vectors, ids: Sequence[str] | None, index: Callable[[Vectors], Index], how: Mining) -> SemiPositives:
    """Semi-positives of every image of (m, E), in memory; `index` makes a search over the distinct ones."""
    place = _ImagePieces(images, ids, how)
    found = index(place.vectors)
    return place.spread([place.piece(found, number) for number in range(place.count)])


def mine_into(
    out: Path, images: Vectors, ids: Sequence[str] | None, search: NeighbourSearch, tell: Progress
) -> SemiPositives:
    """The same to a file `rows`, `weights` (.npz); what was mined when it was interrupted is not mined again.

    Pieces lie in the folder `.NAME.pieces` beside the file until it is whole. `UsageError` if they are of other vectors
    or other settings.
    """
    place, parts = _ImagePieces(images, ids, search.how), out.with_name(f".{out.name}.pieces")
    fingerprint = place.fingerprint(search.name)
    note = parts / "of.txt"
    if note.exists() and note.read_text(encoding="utf-8") != fingerprint:
        raise UsageError(f"{parts} holds pieces of other vectors or settings; remove it, or name another file")
    make_folder(parts)
    write_whole(note, lambda file: file.write(fingerprint.encode()))
    index: Index | None = None
    for number in range(place.count):
        if not (piece := parts / f"{number:06d}.npz").exists():
            index = index or search.make(place.vectors)
            found = place.piece(index, number)
            write_whole(piece, lambda file, found=found: np.savez(file, **found._asdict()))  # type: ignore[misc]
        tell("mining", min((number + 1) * search.how.piece, len(place.vectors)), len(place.vectors))
    found = place.spread([read(parts / f"{number:06d}.npz") for number in range(place.count)])
    write_whole(out, lambda file: np.savez(file, **found._asdict()))
    shutil.rmtree(parts, ignore_errors=True)
    return found


@dataclass(frozen=True)
class NeighbourSearch:
    """How neighbours are found: a name for what makes the index, the thing itself, and the settings of mining."""

    name: str
    make: Callable[[Vectors], Index]
    how: Mining = Mining()


def read(path: Path) -> SemiPositives:
    """What `mine_into` wrote; `UsageError` for another file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            rows, weights = file["rows"], file["weights"]
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {path}; make it with: eyespot mine semipositives VECTORS --out FILE"
        ) from None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise UsageError(f"{path} holds no semi-positives ({error}); mine them again") from None
    if rows.shape != weights.shape or rows.ndim != 2 or rows.dtype.kind != "i" or weights.dtype.kind != "f":
        raise UsageError(f"{path} holds no rows and weights of semi-positives; mine them again")
    return SemiPositives(rows.astype(np.int64), weights.astype(np.float32))


class _ImagePieces:
    """The distinct images, in pieces."""

    def __init__(self, images: Vectors, ids: Sequence[str] | None, how: Mining) -> None:
        self.how, self._first = how, distinct(images, ids)
        self._rows, self._at = np.unique(self._first, return_inverse=True)
        if len(self._rows) < 2:
            raise NothingFound("semi-positives need two distinct images or more; give more vectors")
        wide = np.asarray(images[self._rows], np.float32)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        sound = np.isfinite(lengths) & (lengths > 0)
        self.vectors: Vectors = np.divide(wide, lengths, out=np.zeros_like(wide), where=sound)
        self._void = ~self.vectors.any(axis=1)  # vectors without a direction have no neighbours and are nobody's

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return -(-len(self.vectors) // self.how.piece)

    def fingerprint(self, name: str) -> str:
        hasher = hashlib.sha256(repr((name, asdict(self.how), self.vectors.shape)).encode())
        hasher.update(self._first.tobytes())
        hasher.update(self.vectors.data)
        return hasher.hexdigest()

    def piece(self, index: Index, number: int) -> SemiPositives:
        """Semi-positives of one piece's images, in rows of the distinct."""
        start = number * self.how.piece
        queries = self.vectors[start : start + self.how.piece]
        found = index.search(queries, min(self.how.neighbours + 1, len(self.vectors)))
        rows = np.where(self._void[found.rows] | self._void[start : start + len(queries), None], -1, found.rows)
        return best_neighbours(NearestRows(rows, found.scores), np.arange(start, start + len(queries)), self.how)

    def spread(self, pieces: Sequence[SemiPositives]) -> SemiPositives:
        """From distinct images to all of them, in their rows."""
        rows, weights = (np.concatenate(column)[self._at] for column in zip(*pieces, strict=True))
        return SemiPositives(np.where(rows < 0, -1, self._rows[rows]), weights)


def best_neighbours(found: NearestRows, own: NDArray[np.int64], how: Mining) -> SemiPositives:
    """The best few of each image's neighbours and their weights; the image itself, `own` (n,), is none of them."""
    other = (found.rows != own[:, None]) & (found.rows >= 0)
    order = np.argsort(~other, axis=1, kind="stable")[:, : how.neighbours]  # the others first, as they were found
    there, rows = (np.take_along_axis(part, order, axis=1) for part in (other, found.rows))
    similarities = np.take_along_axis(found.scores.astype(np.float64), order, axis=1)
    logits = np.where(there, similarities / how.temperature, -np.inf)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-2 / how.temperature))
    weights = powers / np.maximum(powers.sum(axis=1, keepdims=True), 1)  # a sum below 1 is that of no neighbour
    best = SemiPositives(np.where(there, rows, -1)[:, : how.keep], weights[:, : how.keep].astype(np.float32))
    lacking = ((0, 0), (0, how.keep - best.rows.shape[1]))
    return SemiPositives(np.pad(best.rows, lacking, constant_values=-1), np.pad(best.weights, lacking))
