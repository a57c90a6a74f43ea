"""Single rows of memory-mapped vectors are read together, not one after the other with all that lies around each.

A page fault waits for the disk and brings in a stretch of the file, up to 8 MiB on rented disks: sixty rows here and
there took seconds. Whoever knows which rows come next names them first, and the system reads them at once.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 8192  # rows; more of them lie so close together that to read around each is no loss
_PAGE = mmap.PAGESIZE


def prefetch_rows(block: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Let the system begin to read some rows (n,) of a block (rows, dim); returns before they are there.

    Does nothing for vectors in memory, for more than `MOST` rows, and where the system cannot do it (Windows).
    """
    mapped = _map_of(block)
    step = block.strides[0] if block.ndim else 0
    if mapped is None or step <= 0 or not 0 < len(rows) <= MOST:
        return
    first = _address(np.asarray(block)) - _address(np.frombuffer(mapped, np.uint8)) + np.sort(rows) * step
    with suppress(OSError):  # a system without the call, or short of memory: whoever reads the rows waits for them
        for start, stop in _stretches(first // _PAGE, (first + step - 1) // _PAGE + 1):
            mapped.madvise(mmap.MADV_WILLNEED, start * _PAGE, (stop - start) * _PAGE)


def _map_of(block: Any) -> mmap.mmap | None:
    """The map that a block of whole rows is a part of, if there is one that takes advice."""
    while block is not None and not isinstance(block, mmap.mmap):
        if isinstance(block, np.ndarray) and block.base is None:
            return None
        block = block.base if isinstance(block, np.ndarray) else getattr(block, "obj", None)
    return block if block is not None and hasattr(block, "madvise") else None


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _stretches(first: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending spans of pages, those that touch put together."""
    stop = np.maximum.accumulate(stop)
    begins = np.concatenate([[True], first[1:] > stop[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return list(zip(first[begins].tolist(), stop[ends].tolist(), strict=True))
