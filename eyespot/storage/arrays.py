"""Vectors in `.npy` files: looked over and copied in bounded pieces, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from eyespot.storage.digests import Checksum

PIECE_BYTES = 16 << 20
UNIT_TOLERANCE = 2e-3  # float16 rounds a unit vector's length by less than this


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers (n,) in order, each once; `np.unique` would import masked arrays, which takes long."""
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])]


@dataclass(frozen=True)
class VectorSurvey:
    """What a look at every row found: rows of zeros or without finite length, and a row that is not of unit length."""

    missing: list[int]
    odd_row: int | None
    odd_length: float


def survey(array: NDArray[Any]) -> VectorSurvey:
    """Look at every row of an array (rows, dim) once, a piece at a time."""
    missing: list[int] = []
    odd_row, odd_length = None, 1.0
    for start, piece in pieces(array):
        lengths = lengths_of(piece)
        lost = ~is_length(lengths)
        missing += (start + np.flatnonzero(lost)).tolist()
        odd = np.flatnonzero(~lost & ~(np.abs(lengths - 1) <= UNIT_TOLERANCE))
        if odd_row is None and len(odd):
            odd_row, odd_length = start + int(odd[0]), float(lengths[odd[0]])
    return VectorSurvey(missing, odd_row, odd_length)


def normalised(array: NDArray[Any], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
    """The rows at unit length, in pieces; rows that have no length are zeros."""
    for _, piece in pieces(array):
        lengths = lengths_of(piece)
        good = is_length(lengths)
        lengths[~good] = 1
        piece[~good] = 0
        yield (piece / lengths[:, None]).astype(dtype)


def pieces(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Consecutive rows as float32 (or wider, if the array is), each with the number of its first row."""
    wide = np.result_type(array.dtype, np.float32)
    step = max(1, PIECE_BYTES // (array.shape[1] * wide.itemsize))
    for start in range(0, len(array), step):
        yield start, array[start : start + step].astype(wide)  # (≤ step, dim)


def lengths_of(rows: NDArray[Any]) -> NDArray[Any]:
    """Euclidean length of each row, (rows,); not finite where a component is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def is_length(lengths: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a row of this length has a direction, (rows,)."""
    return np.asarray(np.isfinite(lengths) & (lengths > 0))


def begin(file: IO[bytes] | Checksum, shape: tuple[int, int], dtype: DTypeLike) -> None:
    """The head of a `.npy` file whose rows follow through `append`."""
    described = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})


def append(file: IO[bytes] | Checksum, rows: NDArray[Any]) -> None:
    """The next rows of a file that was begun; they have its dtype already."""
    file.write(np.ascontiguousarray(rows).data)
