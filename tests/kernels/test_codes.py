"""Codes on disk: the same as in memory, whole or not there, and never taken for those of other vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.kernels.codes import (
    Codes,
    current_codes,
    delete_codes,
    has_codes,
    lengths,
    quantise,
    short_lengths,
    write_codes,
)
from eyespot.types import EyespotError
from tests.examples import examples
from tests.tiny_models import Bomb
from tests.wording import raises

PARTS = ("codes", "bounds", "lengths", "centre", "match")


def block(place: Path, rows: int = 300, dim: int = 70, dtype: str = "float16") -> np.ndarray:
    np.save(place / "v.npy", np.random.default_rng(0).standard_normal((rows, dim)).astype(dtype))
    mapped: np.ndarray = np.load(place / "v.npy", mmap_mode="r")
    return mapped


@pytest.mark.parametrize(
    ("rows", "dim", "dtype"), [(1, 1, "float32"), (300, 70, "float16"), (70_000, 64, "float16")]
)  # the last takes several pieces
def test_written_piece_by_piece_they_are_those_of_memory(tmp_path: Path, rows: int, dim: int, dtype: str) -> None:
    vectors = block(tmp_path, rows, dim, dtype)
    write_codes(vectors, tmp_path / "v", threads=2)
    written, made = Codes.load(tmp_path / "v"), quantise(vectors)
    assert all(np.array_equal(getattr(written, part), getattr(made, part)) for part in PARTS)
    made.save(tmp_path / "b")
    same = [(tmp_path / f"{name}.{part}.npy").read_bytes() for name in "vb" for part in PARTS]
    assert same[:5] == same[5:]


def test_where_a_file_cannot_be_written_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / ".v.lengths.npy.part").mkdir()
    with pytest.raises(IsADirectoryError):
        write_codes(np.ones((50, 4), np.float32), tmp_path / "v")
    assert [place.name for place in tmp_path.iterdir()] == [".v.lengths.npy.part"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_never_ruled_out_and_spoil_no_others(value: float) -> None:
    vectors = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float16)
    sound = quantise(np.delete(vectors, [0, 40], axis=0))
    vectors[[0, 40], 3] = value  # the first is one of those that the centre is made of
    codes = quantise(vectors)
    assert np.isinf(codes.bounds[[0, 40], 1]).all() and np.isinf(codes.lengths[[0, 40]]).all()
    assert np.isfinite(np.delete(codes.bounds, [0, 40], axis=0)).all()
    assert np.allclose(codes.centre, sound.centre, atol=1e-6) and codes.proven(vectors)
    codes.bounds[40, 1] = 1
    assert not codes.proven(vectors)


def test_codes_of_some_rows_are_those_of_the_block_they_make() -> None:
    vectors = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float32)
    part = quantise(vectors).part(vectors, slice(100, 250))
    assert part.fit(vectors[100:250]) and part.proven(vectors[100:250]) and not part.fit(vectors[50:200])


def without_the_last_file(folder: Path) -> None:
    (folder / "v.match.npy").unlink()  # as a kill leaves them


def of_newer_vectors(folder: Path) -> None:
    later = os.stat(folder / "v.codes.npy").st_mtime_ns + 10**9
    os.utime(folder / "v.npy", ns=(later, later))


def damaged(folder: Path) -> None:
    with (folder / "v.bounds.npy").open("r+b") as file:
        file.truncate(200)


@pytest.mark.parametrize("change", [without_the_last_file, of_newer_vectors, damaged])
def test_codes_are_used_only_whole_and_of_their_vectors(change: Callable[[Path], object], tmp_path: Path) -> None:
    vectors = block(tmp_path)
    write_codes(vectors, tmp_path / "v")
    assert has_codes(tmp_path / "v") and current_codes(tmp_path / "v", vectors) is not None

    change(tmp_path)

    assert current_codes(tmp_path / "v", vectors) is None
    delete_codes(tmp_path / "v")
    assert [place.name for place in tmp_path.iterdir()] == ["v.npy"]


def test_a_length_that_is_too_short_and_a_bound_that_promises_too_much_are_not_proven() -> None:
    vectors = np.random.default_rng(1).standard_normal((50, 64)).astype(np.float32)
    short, tight = quantise(vectors), quantise(vectors)
    short.lengths[7] *= 0.99
    tight.bounds[7, 1] *= 0.5
    assert not short.proven(vectors) and not tight.proven(vectors)


@settings(deadline=None)
@given(st.floats(-38, 38), st.integers(1, 200))
def test_lengths_are_never_too_short_and_hardly_too_long(exponent: float, dim: int) -> None:
    vector = (np.random.default_rng(dim).uniform(-1, 1, (1, dim)) * 10**exponent).astype(np.float32)
    true = np.linalg.norm(vector.astype(np.float64), axis=1)
    assert (lengths(vector) >= true).all() and (short_lengths(vector) >= true).all()
    most = true * (1 + dim * 2.0**-20) + dim * 2.0**-55
    assert (short_lengths(vector) <= np.where(most < np.finfo(np.float32).max, most, np.inf)).all()


@pytest.mark.parametrize("part", PARTS)
def test_a_pickle_in_codes_is_refused_and_not_run(tmp_path: Path, part: str) -> None:
    """A gallery may come from somebody else's bucket."""
    quantise(block(tmp_path)).save(tmp_path / "v")
    np.save(tmp_path / f"v.{part}.npy", np.array([Bomb(tmp_path / "sprung")], dtype=object), allow_pickle=True)

    with raises(EyespotError):
        Codes.load(tmp_path / "v")
    assert not (tmp_path / "sprung").exists()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 130), st.sampled_from([1.0, 1e-30, 1e30, 0.0]))
def test_bounds_of_codes_are_proven(seed: int, rows: int, dim: int, size: float) -> None:
    vectors = (size * np.random.default_rng(seed).standard_normal((rows, dim))).astype(np.float32)
    assert quantise(vectors).proven(vectors)
