"""float16 made float32 by compiled code: every number there is, and what a scan reads of a large block."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from eyespot.kernels.codes import floats
from eyespot.kernels.gaussian import by_numpy, gelu
from eyespot.kernels.halves import widened
from eyespot.kernels.rows import add_products
from eyespot.kernels.scans import inner

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def same(found: np.ndarray, halves: np.ndarray) -> bool:
    expected = halves.astype(np.float32)
    signs = np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))
    return found.dtype == np.float32 and np.array_equal(found, expected, equal_nan=True) and signs


def test_every_float16_is_what_numpy_makes_of_it() -> None:
    assert same(widened(ALL), ALL)


def test_the_smallest_are_kept_where_what_is_almost_zero_is_taken_for_zero() -> None:
    torch = pytest.importorskip("torch")
    expected = np.array([1, 3, 1023, 1024, -5], np.float64) * 2.0**-24
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        found = widened(expected.astype(np.float16))
    finally:
        torch.set_flush_denormal(False)
    assert found.tolist() == expected.tolist()


def test_rows_out_of_order_strided_or_none() -> None:
    square = np.random.default_rng(0).permutation(ALL).reshape(256, 256)
    for part in (square, square[::-3], square[:, ::5], square[[7, 7, 0]], square[:0], np.asfortranarray(square)):
        assert same(widened(part), part)
        assert widened(part).flags.c_contiguous


def test_a_large_block_gives_the_same_rows_as_its_parts() -> None:
    block = np.tile(np.random.default_rng(1).permutation(ALL), 1 << 9).reshape(-1, 512)  # 2²⁵ numbers
    assert same(floats(block, slice(11, 77)), block[11:77])
    assert same(floats(block, np.array([60_000, 3, 4])), block[[60_000, 3, 4]])


# -- GELU with numba and without ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gelu_is_the_same_to_the_last_bit(kind: type) -> None:
    values = np.random.default_rng(0).standard_normal(20_000).astype(kind) * 4

    assert gelu(values).tobytes() == by_numpy(values).tobytes()
    assert by_numpy(values).dtype == gelu(values).dtype == kind


# -- scores in double precision ----------------------------------------------------------------------------------


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
