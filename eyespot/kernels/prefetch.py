"""Single rows of mapped files are read together, not one after the other with all that lies around each.

A page fault waits for the disk and brings in a stretch of the file, up to 8 MiB on rented disks: sixty rows here and
there took seconds. Whoever knows which rows come next names them first, and the system reads them at once.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 8192  # rows; more of them lie so close together that to read around each is no loss
_PAGE = mmap.PAGESIZE
_SAMPLED = 8  # rows of many that are tested for being in memory

Addresses = NDArray[np.int64]


def prefetch_rows(block: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Let the system begin to read some rows (n,) of a block (rows, dim); returns before they are there.

    Does nothing for vectors in memory, for more than `MOST` rows, and where the system cannot do it.
    """
    step = block.strides[0] if block.ndim else 0
    if not (step > 0 and 0 < len(rows) <= MOST):
        return
    whole: Any = block
    while isinstance(whole, np.ndarray | memoryview):
        whole = whole.base if isinstance(whole, np.ndarray) else whole.obj
    if isinstance(whole, mmap.mmap):  # a part of a map of a file
        first = block.__array_interface__["data"][0] + rows * step
        prefetch_bytes(first, first + step)


def prefetch_bytes(first: Addresses, stop: Addresses) -> None:
    """The same for stretches of mapped memory, each from an address to the one behind its last byte, (n,) both.

    Where some of many are looked at and lie in memory, so do the others nearly always: naming all would take longer
    than a search of an approximate index.
    """
    if not len(first) or not hasattr(mmap, "MADV_WILLNEED"):
        return
    madvise, mincore = _system_calls()
    some = first[:: max(1, len(first) // _SAMPLED)].tolist()
    there = ctypes.create_string_buffer(1)
    if len(first) > len(some) and all(
        mincore(at // _PAGE * _PAGE, _PAGE, there) == 0 and there.raw[0] & 1 for at in some
    ):
        return
    order = np.argsort(first, kind="stable")
    for start, end in stretches_of(first[order] // _PAGE, (stop[order] - 1) // _PAGE + 1):
        madvise(start * _PAGE, (end - start) * _PAGE, mmap.MADV_WILLNEED)  # a refusal costs time, nothing else


@functools.cache
def _system_calls() -> tuple[Any, Any]:
    """madvise and mincore of the system: Python's own madvise takes a map, and not all maps are Python's."""
    madvise, mincore = ctypes.CDLL(None).madvise, ctypes.CDLL(None).mincore
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return madvise, mincore


def stretches_of(first: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending spans of pages, those that touch put together."""
    stop = np.maximum.accumulate(stop)
    begins = np.concatenate([[True], first[1:] > stop[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return list(zip(first[begins].tolist(), stop[ends].tolist(), strict=True))
