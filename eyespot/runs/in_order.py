"""Rows of a scanned file put in order, and their ids copied out of it, in compiled code."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, disable-error-code="no-any-return"
# (numba's own types tell nothing about what a kernel takes; the comments here do)

from __future__ import annotations

import numpy as np

from eyespot.runs.memory import compiled


@compiled
def gathered(data, places, lengths):
    """The ids one after the other (bytes,), and where each starts and the last ends (rows + 1,)."""
    bounds = np.zeros(len(places) + 1, np.int64)
    for row in range(len(places)):
        bounds[row + 1] = bounds[row] + lengths[row]
    text = np.empty(bounds[-1], np.uint8)
    for row in range(len(places)):
        for byte in range(lengths[row]):
            text[bounds[row] + byte] = data[places[row] + byte]
    return text, bounds


@compiled
def best_first(offsets, values):
    """The order of rows by query and descending value, equal values as they stand; empty if they are in order."""
    for query in range(len(offsets) - 1):
        for row in range(offsets[query] + 1, offsets[query + 1]):
            if values[row] > values[row - 1]:
                return sorted_rows(offsets, values)
    return np.empty(0, np.int64)


@compiled
def sorted_rows(offsets, values):
    """The order of rows by query and descending value, equal values as they stand."""
    order = np.empty(len(values), np.int64)
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        order[start:stop] = start + np.argsort(-values[start:stop], kind="mergesort")
    return order
