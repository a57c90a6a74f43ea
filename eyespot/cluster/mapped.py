"""Arrays in files, by what another process needs to map the same ones; this module needs no Ray."""

from __future__ import annotations

import mmap
import os
from socket import gethostname
from typing import Any, NamedTuple

import numpy as np

from eyespot.kernels.codes import Block, evenly
from eyespot.storage.digests import BLAKE2B
from eyespot.types import EyespotError

_SEALED = 16  # rows by which a worker knows that its file is the one that is meant
_WAY_OUT = "keep the gallery on a disk that all machines of the cluster see, at the same path"


class Mapped(NamedTuple):
    """An array (rows, dim) in a file."""

    path: str
    kind: str  # of its numbers
    shape: tuple[int, int]
    offset: int  # bytes
    seal: bytes


def mapping_of(block: Block) -> Mapped | None:
    """The file of a block that is all of a mapped array; None for other arrays."""
    base: Any = block
    while base is not None and not (isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap)):
        base = getattr(base, "base", None)
    if base is None or base.filename is None or _layout(base) != _layout(block):
        return None
    if base.mode != "r":
        base.flush()
    return Mapped(os.path.abspath(base.filename), block.dtype.str, block.shape, int(base.offset), _seal(block))


def map_file(source: Mapped) -> Block:
    """The array, mapped; `EyespotError` on a machine that does not see its file, or another one at its path."""
    try:
        block: Block = np.memmap(source.path, np.dtype(source.kind), "r", source.offset, source.shape)
    except (OSError, ValueError) as error:
        raise EyespotError(f"{source.path} cannot be read on {gethostname()} ({error}); {_WAY_OUT}") from error
    if _seal(block) != source.seal:
        raise EyespotError(f"{source.path} holds other vectors on {gethostname()}; {_WAY_OUT}")
    return block


def _layout(block: Block) -> tuple[Any, ...]:
    """Where an array begins, and all that says which of the numbers from there on are its."""
    return block.ctypes.data, block.dtype.str, block.shape, block.strides, block.flags.c_contiguous


def _seal(block: Block) -> bytes:
    return BLAKE2B(np.ascontiguousarray(block[evenly(len(block), _SEALED)]).tobytes()).digest()
