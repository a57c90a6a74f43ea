"""The parts of a mapped Arrow batch that some of its rows lie in: a row is a few bytes in many places of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.prefetch import MOST, prefetch_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = NDArray[np.int64]
Spans = tuple[Numbers, Numbers]  # addresses: of the first byte, and behind the last one


def prefetch_facts(batch: pa.RecordBatch, rows: Numbers) -> None:
    """Let the system read these rows of all columns together; where texts begin has to be read before the texts.

    Does nothing for more than `MOST` rows.
    """
    if not 0 < len(rows) <= MOST:
        return
    columns = [_places(column, rows) for column in batch.columns]
    while columns:
        spans = [next(column, None) for column in columns]
        there = [one for one in spans if one is not None]
        if there:
            prefetch_bytes(*(np.concatenate(ends) for ends in zip(*there, strict=True)))
        columns = [column for column, one in zip(columns, spans, strict=True) if one is not None]


def _places(column: Any, rows: Numbers) -> Iterator[Spans]:
    """Where rows of a column lie, one step after the other: each is found in what the step before has read."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.indices
    buffers, at = column.buffers(), rows + column.offset
    if not len(rows) or len(buffers) < 2 or buffers[1] is None:
        return
    if buffers[0] is not None:
        yield _bytes(buffers[0], at // 8, 1)
    if pa.types.is_boolean(column.type):
        yield _bytes(buffers[1], at // 8, 1)
    elif pa.types.is_primitive(column.type):
        yield _bytes(buffers[1], at, column.type.bit_width // 8)
    else:
        yield from _long_places(column, buffers, at)


def _long_places(column: Any, buffers: Sequence[Any], at: Numbers) -> Iterator[Spans]:
    """The same for texts and lists, whose rows lie between two offsets each; of other types nothing is known."""
    import pyarrow as pa

    kinds = {pa.string(): np.int32, pa.large_string(): np.int64}
    is_list = pa.types.is_list(column.type)
    if not is_list and column.type not in kinds:
        return
    offsets: Any = np.frombuffer(buffers[1], kinds.get(column.type, np.int32))
    yield _bytes(buffers[1], at, offsets.itemsize, 2)
    first, stop = offsets[at].astype(np.int64), offsets[at + 1].astype(np.int64)
    if is_list:
        yield from _places(column.values, _ranges(first, stop))
    elif buffers[2] is not None:
        yield buffers[2].address + first, buffers[2].address + stop


def _bytes(buffer: Any, at: Numbers, width: int, count: int = 1) -> Spans:
    first = buffer.address + at * width
    return first, first + count * width


def _ranges(first: Numbers, stop: Numbers) -> Numbers:
    """All numbers from each first to its stop."""
    counts = stop - first
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
