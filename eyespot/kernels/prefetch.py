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
    """The same for stretches of mapped memory, each from an address to the one behind its last byte, (n,) both."""
    advise = _advice()
    if advise is None or not len(first):
        return
    order = np.argsort(first, kind="stable")
    for start, end in _stretches(first[order] // _PAGE, (stop[order] - 1) // _PAGE + 1):
        advise(start * _PAGE, (end - start) * _PAGE, mmap.MADV_WILLNEED)  # a refusal costs time and nothing else


@functools.cache
def _advice() -> Any:
    """The system's `madvise`, None without one. Python's own takes a map, and not all maps are Python's."""
    if not hasattr(mmap, "MADV_WILLNEED"):
        return None
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return advise


def _is_mapped(block: Any) -> bool:
    """Whether an array is a part of a map of a file."""
    while isinstance(block, np.ndarray):
        block = block.base
    while isinstance(block, memoryview):
        block = block.obj
    return isinstance(block, mmap.mmap)


def _stretches(first: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending spans of pages, those that touch put together."""
    stop = np.maximum.accumulate(stop)
    begins = np.concatenate([[True], first[1:] > stop[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return list(zip(first[begins].tolist(), stop[ends].tolist(), strict=True))
