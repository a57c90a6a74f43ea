"""Made copies of the sample photos are found, other photos are not, and no pair is missed for not comparing all."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from eyespot import sample
from eyespot.gallery.groups.near_duplicates import (
    DuplicatePair,
    Near,
    close_hashes,
    close_vectors,
    first_of_family,
    near_duplicates,
)
from eyespot.photos.hashes import Hashes, picture_hashes
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises

# The same three views of monuments stand twice among the sample photos, once in each of two collections.
TWINS = {
    ("categorization__brandenburgGate", "explore_monuments__germany_brandenburgGate"),
    ("categorization__colosseum", "explore_monuments__wonders_colosseum"),
    ("categorization__greatPyramid", "explore_monuments__egypt_greatPyramidOfGiza"),
}
HASHES_ONLY = Near(bits=8, cosine=2)


def recompressed(picture: Image.Image) -> Image.Image:
    file = BytesIO()
    picture.save(file, "JPEG", quality=20)
    return Image.open(file)


def cropped(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    return picture.crop((width // 50, height // 50, width - width // 50, height - height // 50))


COPIES: dict[str, tuple[Callable[[Image.Image], Image.Image], float]] = {  # and the share that hashes alone find
    "quarter": (lambda picture: picture.resize((picture.width // 4, picture.height // 4)), 1),
    "recompressed": (recompressed, 1),
    "turned left": (lambda picture: picture.transpose(Image.Transpose.ROTATE_90), 1),
    "turned round": (lambda picture: picture.transpose(Image.Transpose.ROTATE_180), 1),
    "turned right": (lambda picture: picture.transpose(Image.Transpose.ROTATE_270), 1),
    "mirrored": (ImageOps.mirror, 1),
    "grey": (lambda picture: picture.convert("L"), 1),
    "brighter": (lambda picture: ImageEnhance.Brightness(picture).enhance(1.3), 0.95),
    "cropped": (cropped, 0.93),
}


@cache
def photos() -> list[tuple[str, Image.Image]]:
    return [(path.stem, Image.open(path).convert("RGB")) for path in sorted(sample.photos().glob("*.jpg"))]


@cache
def originals() -> Hashes:
    return np.stack([picture_hashes(picture) for _, picture in photos()])


def recall(copies: Hashes) -> float:
    pairs = near_duplicates(np.concatenate([originals(), copies]), np.empty((2 * len(copies), 0)), HASHES_ONLY)
    found = {(pair.first, pair.second) for pair in pairs}
    return float(np.mean([(row, row + len(copies)) in found for row in range(len(copies))]))


def test_among_the_sample_photos_only_the_twins_are_near_duplicates() -> None:
    pairs = near_duplicates(originals(), np.empty((len(originals()), 0)), HASHES_ONLY)
    names = [name for name, _ in photos()]
    assert {(names[pair.first], names[pair.second]) for pair in pairs} == TWINS


@pytest.mark.parametrize("kind", COPIES)
def test_copies_are_found(kind: str) -> None:
    change, share = COPIES[kind]
    assert recall(np.stack([picture_hashes(change(picture)) for _, picture in photos()])) >= share


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 11), st.integers(0, 2**32 - 1))
def test_no_pair_is_missed_for_not_comparing_all(bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, (6, 8), np.uint64)
    for row in range(1, 6):  # some a few bits from an earlier one, in any of its forms
        flipped = rng.choice(64, rng.integers(0, 20), replace=False)
        changed = hashes[rng.integers(0, row), 0] ^ np.bitwise_or.reduce(np.uint64(1) << flipped.astype(np.uint64))
        hashes[row, rng.integers(0, 8)] = changed
    apart = np.bitwise_count(hashes[:, None, :] ^ hashes[None, :, :1]).min(axis=2)
    expected = [[a, b] for a, b in combinations(range(6), 2) if min(apart[a, b], apart[b, a]) <= bits]
    assert close_hashes(hashes, bits).tolist() == expected


def test_rows_are_told_as_they_were_given_where_some_have_no_pattern() -> None:
    hashes = np.array([[0] * 8, [7] * 8, [0] * 8, [5] * 8], np.uint64)
    assert close_hashes(hashes, 2).tolist() == [[1, 3]]


@given(st.integers(1, 30), st.floats(-1, 1), st.integers(0, 99))
def test_vectors_are_compared_in_blocks_without_missing_a_pair(rows: int, cosine: float, seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((rows, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors.astype(np.float64) @ vectors.T
    found = {tuple(pair) for pair in close_vectors(vectors, cosine).tolist()}
    for pair in combinations(range(rows), 2):
        if abs(cosines[pair] - cosine) > 1e-6:
            assert (pair in found) == (cosines[pair] > cosine)


def test_either_sign_makes_a_pair_and_both_are_told() -> None:
    hashes = np.array([[2**62] * 8, [2**62 + 2**60 - 1] * 8, [2**62 + 0b11] * 8], np.uint64)
    vectors = np.array([[1, 0], [0.96, 0.28], [0, 1]], np.float32)
    assert near_duplicates(hashes, vectors, Near(bits=2, cosine=0.95)) == [
        DuplicatePair(0, 1, 60, pytest.approx(0.96)),
        DuplicatePair(0, 2, 2, 0.0),
    ]


def test_all_pairs_of_a_large_family_are_told_in_the_order_of_their_rows() -> None:
    """More than are looked at together."""
    same = near_duplicates(np.full((100, 8), 7, np.uint64), np.zeros((100, 0)), HASHES_ONLY)
    assert [(pair.first, pair.second) for pair in same] == list(combinations(range(100), 2))
    assert {(pair.bits, pair.cosine) for pair in same} == {(0, 0.0)}


def test_a_family_is_joined_over_any_number_of_pairs() -> None:
    pairs = [DuplicatePair(first, second, 0, 1.0) for first, second in ((4, 5), (1, 4), (2, 6), (0, 5))]
    assert first_of_family(pairs, 8).tolist() == [0, 0, 2, 3, 0, 0, 2, 7]


def test_pictures_without_a_pattern_are_copies_of_nothing() -> None:
    """Red, blue and white ones say nothing by their hashes; their colours tell them apart by their vectors."""
    colours = ("red", "blue", "white")
    plain = np.stack([picture_hashes(Image.new("RGB", (80, 60), colour)) for colour in colours])
    assert not plain.any() and near_duplicates(plain, np.eye(3, dtype=np.float32), Near()) == []


def test_what_does_not_fit_is_refused() -> None:
    with raises(UsageError):
        Near(bits=12)
    with raises(UsageError):
        near_duplicates(np.zeros((2, 8), np.uint64), np.zeros((1, 4), np.float32), Near())
