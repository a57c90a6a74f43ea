"""Adapted queries that share a reading of the codes, each with its own k and mask: each finds what it would alone."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eyespot.adapters.quari._formula import Formula
from eyespot.kernels.rows import Ids, Reals, RowBlocks
from eyespot.types import Mask, ScanRequest, UsageError

_TOGETHER = 4  # queries that share one reading of the codes
_NARROW = 4  # a mask that lets fewer than one row in so many through shares no reading with others


@dataclass
class AdaptedTask:
    """One query: its formula, k, mask (rows,), how many rows that lets through, and what was found, (k,) both."""

    formula: Formula
    k: int
    mask: Mask | None
    count: int
    found: tuple[Ids, Reals]

    @classmethod
    def of(cls, request: ScanRequest, rows: RowBlocks) -> AdaptedTask:
        """`UsageError` for a query that does not fit the vectors."""
        count = len(rows) if request.mask is None else int(np.count_nonzero(request.mask))
        dim = rows.dim if len(rows) else len(request.query.query)
        nothing = np.empty(0, np.int64), np.empty(0)
        return cls(Formula.of(request.query, dim), min(positive(request.k), count), request.mask, count, nothing)


def shared_readings(tasks: Sequence[AdaptedTask], rows: int, mixed: bool) -> Iterator[list[AdaptedTask]]:
    """Those of one mask share a reading; where codes are read (`mixed`), those of several wide masks do too.

    Only codes give a row the same bound whichever rows stand beside it, so that each goes on as if it were alone.
    """
    groups: dict[int, list[AdaptedTask]] = {}
    for task in tasks:
        wide = mixed and task.count * _NARROW >= rows
        groups.setdefault(0 if wide else id(task.mask), []).append(task)
    for same in groups.values():
        yield from (same[start : start + _TOGETHER] for start in range(0, len(same), _TOGETHER))


def union(masks: Sequence[Mask | None]) -> Mask | None:
    """The rows that any of the masks lets through; None for all."""
    whole = masks[0]
    for mask in masks[1:]:
        if whole is None or mask is None:
            return None
        whole = whole if mask is whole else whole | mask
    return whole


def positive(k: int) -> int:
    """k as an int; `UsageError` below 1."""
    if operator.index(k) < 1:
        raise UsageError(f"k is {k}; ask for at least one row")
    return operator.index(k)
