"""What a search of any index is asked, checked: queries of its vectors' length, a sensible k, a mask over its rows."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.rows import RowBlocks
from eyespot.types import Mask, UsageError, Vectors


def positive(k: int) -> int:
    """k as an int; `UsageError` below 1."""
    if operator.index(k) < 1:
        raise UsageError(f"k is {k}; ask for at least one row")
    return operator.index(k)


def queries_for(rows: RowBlocks, queries: Vectors) -> NDArray[np.float32]:
    """The queries in contiguous float32, (m, dim); `UsageError` for another length and for what is not finite."""
    vectors = np.ascontiguousarray(queries, np.float32)
    if vectors.ndim != 2 or (rows.blocks and vectors.shape[1] != rows.dim):
        raise UsageError(f"queries of shape {vectors.shape} do not fit these vectors; give (queries, {rows.dim})")
    if not np.isfinite(vectors).all():
        raise UsageError("a query holds NaN or infinity; encode it again")
    return vectors


def allowed(mask: Mask | None, rows: int) -> Mask | None:
    """The mask, (rows,); `UsageError` for one of another shape or type."""
    if mask is None:
        return None
    if mask.dtype != np.bool_ or mask.shape != (rows,):
        raise UsageError(f"the mask is {mask.dtype} of shape {mask.shape}; give a boolean for each of the {rows} rows")
    return np.ascontiguousarray(mask)
