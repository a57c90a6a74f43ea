"""float16 to float32, some ten times as fast as numpy: scans of vectors in half precision spend their time here.

Whole numbers are moved, so that nothing depends on how a processor is set to treat float32 that are almost zero.
Importing this file imports numba, so that is left to galleries that repay it.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, disable-error-code="call-arg"

from __future__ import annotations

from typing import Any

from eyespot.kernels import keep_compiled_kernels

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

_SIZE, _NORMAL, _ENDLESS = np.int32(0x7FFF), np.int32(0x0400), np.int32(0x7C00)  # what is neither normal nor finite
_EXPONENT, _LEAST = np.int32((127 - 15) << 23), np.float32(2.0**-24)  # by which exponents differ; the smallest float16


def widened(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """The same numbers in float32, to the bit, contiguous; on one thread, without the GIL."""
    made = np.empty(halves.shape, np.float32)
    _widen(np.ascontiguousarray(halves).reshape(-1).view(np.int16), made.reshape(-1))
    return made


@intrinsic
def _as_float(_context: Any, _bits: Any) -> Any:
    """The float32 of these bits: for views of arrays numba would give up vector registers."""

    def made(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), made


@numba.njit(
    types.void(types.Array(types.int16, 1, "C", readonly=True), types.float32[::1]),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def _widen(halves, out):
    for at in range(halves.size):
        half = np.int32(halves[at])
        size = half & _SIZE
        bits = (size << np.int32(13)) + _EXPONENT
        if size >= _ENDLESS:
            bits += _EXPONENT
        value: Any = _as_float(bits)
        if size < _NORMAL:
            value = np.float32(size) * _LEAST
        out[at] = -value if half < 0 else value
