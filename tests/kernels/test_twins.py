"""Kernels with numba and without: both are run here, and give the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.kernels import gaussian, gaussian_numpy, scans, scans_numpy
from eyespot.kernels.codes import Codes, padded, quantise
from tests.examples import examples

SEEDS = st.integers(0, 2**32 - 1)
RUNS = settings(max_examples=examples(60), deadline=None)


# -- vectors ----------------------------------------------------------------------------------------------------


@RUNS
@given(SEEDS, st.integers(1, 30), st.integers(1, 130), st.sampled_from([1.0, 1e-30, 1e30, 0.0]))
def test_codes_are_the_same_and_their_bounds_proven(seed: int, rows: int, dim: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = (size * rng.standard_normal((rows, dim))).astype(np.float32)
    made = quantise(vectors)
    codes, bounds = np.zeros((rows, padded(dim)), np.int8), np.empty((rows, 4), np.float32)

    scans_numpy.code_rows(vectors, made.centre, codes, bounds)
    plain = Codes(codes, bounds, made.lengths, made.centre, made.match)

    assert np.array_equal(codes, made.codes) and plain.proven(vectors)
    np.testing.assert_allclose(bounds, made.bounds, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gelu_is_the_same_to_the_last_bit(kind: type) -> None:
    values = np.random.default_rng(0).standard_normal(20_000).astype(kind) * 4

    assert gaussian.gelu(values).tobytes() == gaussian_numpy.gelu(values).tobytes()
    assert gaussian_numpy.gelu(values).dtype == kind


def test_the_twins_have_what_is_asked_of_them() -> None:
    """A kernel that only one of a pair has would be missed where numba is missing."""
    wanted = {scans: ["code_rows"], gaussian: ["gelu"]}
    twins = {scans: scans_numpy, gaussian: gaussian_numpy}
    for module, names in wanted.items():
        assert [name for name in names if not (hasattr(module, name) and hasattr(twins[module], name))] == []
