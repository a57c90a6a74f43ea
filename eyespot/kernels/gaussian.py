"""The exact GELU, x · Φ(x): numpy has no error function, and a tanh approximation is off by 1e-3."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

from eyespot.kernels import keep_compiled_kernels

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import float32, float64, types  # noqa: E402

ROOT = math.sqrt(0.5)


def _read_only(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C", readonly=True)


@numba.njit([float32[::1](_read_only(float32)), float64[::1](_read_only(float64))], nogil=True, cache=True)
def gelu(values):
    """x · Φ(x) of each value, (n,), in its own precision."""
    out = np.empty_like(values)
    for at in range(len(values)):
        value = float64(values[at])
        out[at] = 0.5 * value * (1.0 + math.erf(value * ROOT))
    return out
