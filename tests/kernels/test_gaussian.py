"""GELU with numba and without: the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from eyespot.kernels.gaussian import by_numpy, gelu


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gelu_is_the_same_to_the_last_bit(kind: type) -> None:
    values = np.random.default_rng(0).standard_normal(20_000).astype(kind) * 4

    assert gelu(values).tobytes() == by_numpy(values).tobytes()
    assert by_numpy(values).dtype == gelu(values).dtype == kind
