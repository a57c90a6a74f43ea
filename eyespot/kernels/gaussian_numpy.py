"""The twin of `gaussian` in numpy: the error function of Python's own math, one number after another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = math.sqrt(0.5)


def gelu(values: NDArray[Any]) -> NDArray[Any]:
    """x · Φ(x) of each value, (n,), in its own precision."""
    exact = values.astype(np.float64)
    error = np.fromiter(map(math.erf, (exact * ROOT).tolist()), np.float64, len(exact))
    made: NDArray[Any] = (0.5 * exact * (1.0 + error)).astype(values.dtype)
    return made
