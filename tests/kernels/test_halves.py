"""float16 made float32 by compiled code: every number there is, and what a scan reads of a large block."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from eyespot.adapters.quari.forward import gelu, gelu_by_numpy
from eyespot.kernels.codes import floats
from eyespot.kernels.halves import widened
from eyespot.kernels.prefetch import prefetch_rows, stretches_of
from eyespot.kernels.rows import RowBlocks, add_products
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

    assert gelu(values).tobytes() == gelu_by_numpy(values).tobytes()
    assert gelu_by_numpy(values).dtype == gelu(values).dtype == kind


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


# -- rows named beforehand are read, and no others; naming them changes no score ----------------------------------


ROWS, DIM = 8192, 2048  # 32 MiB, a page a row


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """Vectors whose file is in no memory."""
    if sys.platform != "linux":
        pytest.skip("this system does not say what is in memory")
    place = tmp_path / "vectors.npy"
    np.save(place, np.arange(ROWS, dtype=np.float16)[:, None] % 1000 + np.zeros(DIM, np.float16))
    with place.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(place, 4000):
        pytest.skip("this file system keeps all files in memory")
    return place


def in_memory(place: Path, row: int) -> bool:
    """Whether the page in which a row ends lies in memory; looking brings none there."""
    with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        page = (128 + 2 * DIM * (row + 1)) // mmap.PAGESIZE * mmap.PAGESIZE
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped, page))
        there = ctypes.create_string_buffer(1)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(1), there):
            raise OSError(ctypes.get_errno(), "mincore")
        return bool(there.raw[0] & 1)


@pytest.mark.parametrize(
    ("rows", "between"),
    [([7900, 0, 2500], [1400, 3900, 6400]), (list(range(0, 8000, 40)), [1420, 3940, 6420])],
    ids=["few", "many"],
)
def test_only_the_rows_that_were_named_are_read(on_disk: Path, rows: list[int], between: list[int]) -> None:
    block = np.load(on_disk, mmap_mode="r")
    later = np.asarray(block)[100:]

    wanted = {100 + row for row in rows}
    while wanted:  # a system whose memory is full may forget what it was asked for, or read, and is asked again
        prefetch_rows(later, np.array(rows))
        wanted = {row for row in wanted if not in_memory(on_disk, row)}
    assert not any(in_memory(on_disk, 100 + row) for row in between)


@given(st.lists(st.integers(0, 499), max_size=40), st.integers(0, 400), st.integers(1, 300))
def test_scores_of_rows_on_disk_are_those_of_rows_in_memory(rows: list[int], skip: int, dim: int) -> None:
    vectors = np.random.default_rng(dim).normal(size=(900, dim)).astype(np.float32)
    wanted, query = np.array(rows, np.int64), np.ones(dim)
    memory = RowBlocks([vectors[skip : skip + 200], vectors[skip + 200 : skip + 500]])
    mapped = _mapped(vectors)
    disk = RowBlocks([mapped[skip : skip + 200], mapped[skip + 200 : skip + 500]])

    assert np.array_equal(disk.scores(wanted, query, add_products), memory.scores(wanted, query, add_products))
    assert np.array_equal(disk.gather(wanted), memory.gather(wanted))


def _mapped(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, vectors)
        file.flush()
        return np.load(file.name, mmap_mode="r")  # type: ignore[no-any-return]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 5)), min_size=1, max_size=30))
def test_stretches_are_the_pages_of_all_spans_and_lie_apart(spans: list[tuple[int, int]]) -> None:
    spans.sort()
    first = np.array([start for start, _ in spans])
    stop = np.array([start + pages for start, pages in spans])

    stretches = stretches_of(first, stop)

    pages = {page for start, end in zip(first.tolist(), stop.tolist(), strict=True) for page in range(start, end)}
    assert {page for start, end in stretches for page in range(start, end)} == pages
    assert all(end < start for (_, end), (start, _) in pairwise(stretches))
