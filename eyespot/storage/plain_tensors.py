"""Tensors of torch in a pickle as arrays, without torch and without unpickling: the calls that `plain_pickles` follows.

A tensor that is pickled by itself holds its numbers as torch's older file format: five pickles (a magic number, the
version, the machine, the storage, its key), the count as eight bytes, and the bytes of the numbers.
"""

from __future__ import annotations

import io
import pickletools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.plain_pickles import NotPlain

PICKLES = 5
KINDS = {
    **{"torch HalfStorage": "<f2", "torch FloatStorage": "<f4", "torch DoubleStorage": "<f8"},
    **{"torch LongStorage": "<i8", "torch IntStorage": "<i4"},
}


def _storage(data: bytes) -> NDArray[Any]:
    """The numbers of a storage, (n,)."""
    file, names = io.BytesIO(data), []
    for _ in range(PICKLES):
        names += [argument for opcode, argument, _ in pickletools.genops(file) if opcode.name == "GLOBAL"]
    kind = next((KINDS[name] for name in names if name in KINDS), None)
    if kind is None:
        raise NotPlain(f"a tensor of {', '.join(map(str, names)) or 'no numbers'}")
    count_bytes, numbers = file.read(8), file.read()
    if len(count_bytes) != 8 or struct.unpack("<q", count_bytes)[0] * np.dtype(kind).itemsize != len(numbers):
        raise NotPlain("a tensor that is cut off")
    return np.frombuffer(numbers, kind)


def _tensor(storage: NDArray[Any], offset: int, size: Sequence[int], stride: Sequence[int], *_: object) -> NDArray[Any]:
    """A tensor of one dimension, (n,)."""
    if len(size) != 1 or tuple(stride) != (1,) or not 0 <= offset <= offset + size[0] <= len(storage):
        raise NotPlain("a tensor whose shape is not a flat list of numbers")  # its shape may take gigabytes as a text
    return storage[offset : offset + size[0]]


def _no_hooks() -> dict[Any, Any]:
    """The hooks of a tensor; what the pickle gives could have keys that break Python while they are hashed."""
    return {}


TENSORS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch.storage._load_from_bytes": _storage,
    "collections.OrderedDict": _no_hooks,
}
