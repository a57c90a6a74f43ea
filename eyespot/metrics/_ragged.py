"""Rows under queries as flat arrays: rows `offsets[i]` up to `offsets[i + 1]` belong to query i."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Grades: TypeAlias = NDArray[np.int32]
Reals: TypeAlias = NDArray[np.float64]


def offsets_of(lengths: Any) -> Ints:
    """(q,) lengths to (q + 1,) offsets."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def rows_between(starts: Ints, lengths: Ints) -> Ints:
    """The rows starts[i], starts[i] + 1, … of every query, one query after another, (sum of lengths,)."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def counts_where(offsets: Ints, marked: NDArray[np.bool_]) -> Ints:
    """How many rows of each query are marked, (q,)."""
    before = np.concatenate([[0], np.cumsum(marked)])  # (rows + 1,)
    return np.asarray(before[offsets[1:]] - before[offsets[:-1]], dtype=np.int64)


def sums(offsets: Ints, values: Reals) -> Reals:
    """The sum of each query's values, (q,)."""
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.bincount(queries, weights=values, minlength=len(offsets) - 1).astype(np.float64)
