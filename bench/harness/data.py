"""Data of benchmarks: made vectors, and the photos and labels of a folder `shared` next to the checkout."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.harness.command import BenchmarkError
from eyespot.types import AdaptedQuery

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]

DIM = 768
ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BLOCK = 20_000  # rows made at a time
RANK = 64  # of the map of an adapted query


class SyntheticVectors:
    """Clusters to draw unit vectors from, any number at a time; queries are drawn with more noise."""

    def __init__(self, dim: int, clusters: int = 5000, seed: int = 0) -> None:
        self.dim, self._rng = dim, np.random.default_rng(seed)
        spectrum = np.arange(1, dim + 1, dtype=np.float32) ** -0.5
        turn = np.linalg.qr(self._rng.standard_normal((dim, dim)))[0].astype(np.float32)
        self._mix = (spectrum / np.linalg.norm(spectrum))[:, None] * turn.T  # (dim, dim)
        offset = self._rng.standard_normal(dim).astype(np.float32)
        self._centres = 0.8 * self._normal(clusters) + 0.5 * offset / np.linalg.norm(offset)

    def draw(self, count: int, noise: float = 0.6) -> Floats:
        """Unit vectors, (count, dim)."""
        vectors = noise * self._normal(count) + self._centres[self._rng.integers(0, len(self._centres), count)]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def query(self) -> Floats:
        """One query, (1, dim)."""
        return self.draw(1, noise=0.75)

    def adapted(self) -> AdaptedQuery:
        """A query with a map of its own, in the form of the released checkpoints: identity, Frobenius norms."""
        left, right = (self._factor() for _ in range(2))
        return AdaptedQuery(self.query()[0], 0.8 * left, right, 1.0)

    def fill(self, place: Path, rows: int) -> NDArray[Any]:
        """So many vectors in float16 on disk, mapped."""
        vectors = np.lib.format.open_memmap(place, "w+", np.float16, (rows, self.dim))
        for start in range(0, rows, BLOCK):
            vectors[start : start + BLOCK] = self.draw(min(BLOCK, rows - start))
        vectors.flush()
        mapped: NDArray[Any] = np.load(place, mmap_mode="r")
        return mapped

    def _normal(self, count: int) -> Floats:
        return self._rng.standard_normal((count, self.dim), dtype=np.float32) @ self._mix

    def _factor(self) -> Floats:
        columns = self._rng.standard_normal((self.dim, RANK), dtype=np.float32)
        return columns / np.float32(np.linalg.norm(columns))


def clusters(count: int = 20_000, dim: int = DIM, seed: int = 0) -> SyntheticVectors:
    """Unit vectors in Gaussian clusters, with a power-law spectrum and a common offset; queries are noisier."""
    return SyntheticVectors(dim, count, seed)


def vectors_on_disk(world: SyntheticVectors, path: Path, rows: int) -> Floats:
    """Vectors in float32, (rows, dim), mapped from a file."""
    vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, world.dim))
    for start in range(0, rows, BLOCK):
        vectors[start : start + BLOCK] = world.draw(min(BLOCK, rows - start))
    vectors.flush()
    mapped: Floats = np.load(path, mmap_mode="r")
    return mapped


def shared(path: str, root: Path = SHARED) -> Path:
    """A file or folder of the shared data; BenchmarkError if it is missing."""
    if not (root / path).exists():
        raise BenchmarkError(f"this benchmark needs {root / path}, which is missing")
    return root / path


def metadata(folder: Path) -> list[dict[str, str]]:
    """The rows of a photo set's metadata.csv."""
    with (folder / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
