"""Data of benchmarks: made vectors, and the photos and labels of a folder `shared` next to the checkout."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.harness.command import BenchmarkError
from eyespot.search.plan.measuring import SyntheticVectors

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]

DIM = 768
ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BLOCK = 20_000  # rows made at a time


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
