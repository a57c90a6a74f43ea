"""Single rows of mapped files are read together, not one after the other with all that lies around each.

A page fault waits for the disk and brings in a stretch of the file, up to 8 MiB on rented disks: sixty rows here and
there took seconds. Whoever knows which rows come next names them first, and the system reads them at once.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST = 8192  # rows; more of them lie so close together that to read around each is no loss
_PAGE = mmap.PAGESIZE
_LOOKS = 8  # rows of many that are looked at

Addresses = NDArray[np.int64]


def prefetch_rows(block: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Let the system begin to read some rows (n,) of a block (rows, dim); returns before they are there.

    Does nothing for vectors in memory, for more than `MOST` rows, and where the system cannot do it (Windows).
    """
    step = block.strides[0] if block.ndim else 0
    if step > 0 and 0 < len(rows) <= MOST and _is_mapped(block):
        first = block.__array_interface__["data"][0] + rows * step
        prefetch_bytes(first, first + step)


def prefetch_bytes(first: Addresses, stop: Addresses) -> None:
    """The same for stretches of mapped memory, each from an address to the one behind its last byte, (n,) both.

    Where some of many are looked at and lie in memory, so do the others nearly always: naming all would take longer
    than a search of an approximate index.
    """
    calls = _system_calls()
    if calls is None or not len(first):
        return
    some = first[:: max(1, len(first) // _LOOKS)].tolist()
    if len(first) > len(some) and all(_in_memory(calls.mincore, at // _PAGE) for at in some):
        return
    order = np.argsort(first, kind="stable")
    for start, end in stretches_of(first[order] // _PAGE, (stop[order] - 1) // _PAGE + 1):
        calls.madvise(start * _PAGE, (end - start) * _PAGE, mmap.MADV_WILLNEED)  # a refusal costs time, nothing else


class _SystemCalls(NamedTuple):
    """Python's own madvise takes a map, and not all maps are Python's; mincore it has not."""

    madvise: Any
    mincore: Any


@functools.cache
def _system_calls() -> _SystemCalls | None:
    if not hasattr(mmap, "MADV_WILLNEED"):
        return None
    calls = _SystemCalls(ctypes.CDLL(None).madvise, ctypes.CDLL(None).mincore)
    calls.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    calls.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return calls


def _in_memory(mincore: Any, page: int) -> bool:
    there = ctypes.create_string_buffer(1)
    return mincore(page * _PAGE, _PAGE, there) == 0 and bool(there.raw[0] & 1)


def _is_mapped(block: Any) -> bool:
    """Whether an array is a part of a map of a file."""
    while isinstance(block, np.ndarray):
        block = block.base
    while isinstance(block, memoryview):
        block = block.obj
    return isinstance(block, mmap.mmap)


def stretches_of(first: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending spans of pages, those that touch put together."""
    stop = np.maximum.accumulate(stop)
    begins = np.concatenate([[True], first[1:] > stop[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return list(zip(first[begins].tolist(), stop[ends].tolist(), strict=True))
