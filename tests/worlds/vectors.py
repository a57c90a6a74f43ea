"""A gallery of drawn vectors, large enough that an approximate index is worth having; each import is a shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery.view import Gallery, View

DIM = 512  # of the built-in encoder, whose name the vectors get


def drawn(rows: int, seed: int) -> np.ndarray:
    """Clustered vectors of unit length, (rows, dim)."""
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((24, DIM))
    inner = rng.standard_normal((40, 24))[rng.integers(0, 40, rows)] + 0.7 * rng.standard_normal((rows, 24))
    vectors = inner @ basis + 0.5 * rng.standard_normal((rows, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def take(gallery: Path, vectors: np.ndarray, name: str = "one", encoder: str = "starter") -> View:
    """The gallery with these vectors as one more shard."""
    folder = gallery.parent / name
    folder.mkdir(parents=True)
    np.save(folder / "vectors.npy", vectors)
    take_in(gallery, npy.source([folder]), encoder, copy=True)
    return view_of(gallery)


def view_of(gallery: Path) -> View:
    """Its only space, as it lies there now."""
    opened = Gallery(gallery)
    return opened.view(opened.stem())


def clustered(rows: int, dim: int = 32, centres: int = 200, seed: int = 0) -> np.ndarray:
    """Vectors of unit length around some centres, (rows, dim)."""
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((centres, dim))
    vectors = middles[rng.integers(0, centres, rows)] + 0.5 * rng.standard_normal((rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
