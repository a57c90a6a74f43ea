"""Scores in double precision: one definition, whichever code computes it."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from eyespot.kernels.rows import add_products
from eyespot.kernels.scans import inner


@given(st.integers(0, 40), st.integers(1, 70), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-20, 1e15]))
def test_compiled_or_not_every_bit_of_a_score_is_the_same(count: int, dim: int, seed: int, size: float) -> None:
    random = np.random.default_rng(seed)
    vectors = (size * random.standard_normal((50, dim))).astype(np.float32)
    rows, query = random.integers(0, 50, count), random.standard_normal(dim)
    plain, compiled, alone = np.empty(count), np.empty(count), np.empty(count)

    add_products(vectors, rows, query, plain)
    inner(vectors, rows, query, compiled)
    for at in range(count):
        add_products(vectors, rows[at : at + 1], query, alone[at : at + 1])

    assert plain.tobytes() == compiled.tobytes() == alone.tobytes()
    np.testing.assert_allclose(plain, vectors[rows].astype(np.float64) @ query, rtol=1e-9, atol=1e-9 * size)
