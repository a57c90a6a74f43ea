"""The twin of `scans` in numpy: codes can be made without numba, but are not scanned.

A scan of the vectors, which numpy multiplies as fast as it can, is as exact and takes no longer than numpy would over
codes. Codes that are stored serve whoever has numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

_AT_ONCE = 1 << 18  # numbers in double precision, several times over


def code_rows(vectors: Floats, centre: Floats, codes: NDArray[np.int8], bounds: Floats) -> None:
    """vectors (n, dim) less the centre (dim,) as codes (n, width ≥ dim, zeroed) and their bounds (n, 4)."""
    step = max(1, _AT_ONCE // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        part = slice(start, start + step)
        _code(vectors[part], centre, codes[part], bounds[part])


def _code(vectors: Floats, centre: Floats, codes: NDArray[np.int8], bounds: Floats) -> None:
    centred = vectors.astype(np.float64) - centre  # (n, dim)
    largest = np.abs(centred).max(axis=1, initial=0)  # (n,)
    scale = _above(largest / 127).astype(np.float64)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    whole = np.rint(centred * inverse[:, None])
    left = centred - scale[:, None] * whole
    rounding = 1e-15 * largest * np.sqrt(centred.shape[1])  # of the subtractions in double precision
    codes[:, : centred.shape[1]] = whole
    bounds[:, 0], bounds[:, 3] = scale, whole.sum(axis=1)
    bounds[:, 1] = _above(np.sqrt(np.square(left).sum(axis=1)) + rounding)
    bounds[:, 2] = _above(scale * np.sqrt(np.square(whole).sum(axis=1)))


def _above(values: Reals) -> Any:
    """Float32 that are not less than the values."""
    near = (values * (1 + 1e-6)).astype(np.float32)
    return np.where(near >= values, near, near + np.float32(1.5e-45))
