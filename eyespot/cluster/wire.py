"""What processes tell each other: messages of JSON with arrays behind it, and where arrays lie in files; no pickles.

This module needs no Ray.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Sequence
from socket import gethostname
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.codes import Block, evenly
from eyespot.storage.digests import BLAKE2B
from eyespot.types import EyespotError

_SIZE = struct.Struct("<Q")
_MOST_HEAD = 1 << 28  # bytes; places of all blocks of the largest gallery take a tenth
Message = tuple[dict[str, Any], list[NDArray[Any]]]


def write(out: IO[bytes], head: dict[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> None:
    """One message; OSError where nobody reads."""
    whole = [np.ascontiguousarray(array) for array in arrays]
    shapes = [[array.dtype.str, list(array.shape)] for array in arrays]
    text = json.dumps(head | {"arrays": shapes}).encode()
    out.write(_SIZE.pack(len(text)) + text)
    for array in whole:
        out.write(array.tobytes())
    out.flush()


def read(source: IO[bytes]) -> Message:
    """The next message; `EOFError` at the end, also in the middle of one."""
    (size,) = _SIZE.unpack(_exactly(source, _SIZE.size))
    if size > _MOST_HEAD:
        raise EOFError
    head: dict[str, Any] = json.loads(_exactly(source, size))
    arrays = []
    for kind, shape in head.pop("arrays"):
        number = np.dtype(kind)
        data = _exactly(source, number.itemsize * int(np.prod(shape, dtype=np.int64)))
        arrays.append(np.frombuffer(data, number).reshape(shape).copy())
    return head, arrays


def _exactly(source: IO[bytes], count: int) -> bytes:
    data = source.read(count)
    if len(data) < count:
        raise EOFError
    return data


# -- arrays in files ------------------------------------------------------------------------------------------------


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
