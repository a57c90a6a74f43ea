"""float16 made float32 by compiled code: every number there is, and what a scan reads of a large block."""

from __future__ import annotations

import numpy as np
import pytest

from eyespot.kernels.codes import floats
from eyespot.kernels.halves import widened

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
