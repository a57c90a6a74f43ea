"""Vectors in HDF5 files, as ILIAS exchanges them: `features` (rows, dim), and `index` with the name of each row.

A dataset that lies in the file in one piece is mapped where it lies. One that is packed in chunks (and so every
compressed one, also at level 0) can only be read piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.text_files import ALLOWANCE, EXPANSION
from eyespot.types import EyespotError

SUFFIXES = (".hdf5", ".h5")
FEATURES, INDEX, NAME = "features", "index", "image_id"


def features(path: Path) -> Any:
    """The vectors of a file: a memory-mapped array (rows, dim) where that is possible, else an h5py dataset.

    Both have `shape` and `dtype` and give arrays for slices. Raises `EyespotError` for what is not such a file.
    """
    with _readable(path):
        dataset = _dataset(path, FEATURES)
        if dataset is None or dataset.ndim != 2 or dataset.dtype.kind != "f" or not dataset.size:
            raise EyespotError(f"{path} holds no rows of float vectors called {FEATURES}; save them under this name")
        if dataset.nbytes > ALLOWANCE + EXPANSION * path.stat().st_size:  # chunks that are not there are zeros
            raise EyespotError(f"{path} has {path.stat().st_size:,} bytes and would unfold to {dataset.nbytes:,}")
        offset = dataset.id.get_offset()  # from the beginning of the file; None where it lies in chunks
        if offset is None or offset + dataset.nbytes > path.stat().st_size:
            return dataset
        array: NDArray[Any] = np.memmap(path, dataset.dtype, "r", offset, dataset.shape)
        return array


def _dataset(path: Path, name: str) -> Any:
    """A dataset of the file's own, or None: what a link finds in other files is not asked for."""
    from eyespot.rooms import needs

    with needs("hdf5"):
        import h5py
    file = h5py.File(path, "r")
    if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
        return None
    return None if file[name].external or file[name].is_virtual else file[name]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise EyespotError(f"{path} is gone (an unplugged disk?); put it back or import into a new gallery") from None
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EyespotError(f"{path} cannot be read as HDF5 ({reason}); complete it (a cut download?)") from error


def count_names(path: Path) -> int | None:
    """How many names of rows a file holds; None if it names no rows, `EyespotError` if that is not a list of names."""
    with _readable(path):
        names = _dataset(path, INDEX)
        if names is not None and names.ndim != 1:
            raise EyespotError(f"{path} has an {INDEX} of shape {names.shape}; save it as a list of one name a row")
        return None if names is None else len(names)


def names(path: Path, at_once: int) -> Iterator[list[str]]:
    """The name of each row, so many at a time."""
    with _readable(path):
        held = _dataset(path, INDEX)
        for start in range(0, len(held), at_once):
            # Names as text, also where they were kept as numbers; UnicodeDecodeError for bytes that are
            # no text
            values = held[start : (start + at_once)].tolist()
            yield [value.decode() if isinstance(value, bytes) else str(value) for value in values]
