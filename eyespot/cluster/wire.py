"""Messages between a server and the process that speaks to Ray for it: JSON, and arrays behind it; no pickles."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_SIZE = struct.Struct("<Q")
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
