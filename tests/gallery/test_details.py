"""Pages, screens and skies are copies only if they are the same to the letter."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageDraw, ImageEnhance, ImageFont, ImageOps

from eyespot import sample
from eyespot.gallery.groups.details import prepared, same_details
from eyespot.gallery.groups.near_duplicates import (
    HASHES,
    DuplicatePair,
    Near,
    close_hashes,
    close_vectors,
    first_of_family,
    near_duplicates,
    write_hashes,
)
from eyespot.photos.hashes import COLUMNS, PLAIN, STROKES, Hashes, picture_hashes, picture_kind
from eyespot.types import UsageError
from tests.examples import examples
from tests.gallery.test_groups import grouped
from tests.wording import raises
from tests.worlds import index_gallery

WORDS = "heron pool river stone light paper tower garden window bridge morning letter"


def page(seed: int, size: tuple[int, int] = (620, 877), paper: str = "white", ink: str = "black") -> Image.Image:
    rng, picture = random.Random(seed), Image.new("RGB", size, paper)
    draw = ImageDraw.Draw(picture)
    for y in range(60, size[1] - 60, 22):
        draw.text((50, y), " ".join(rng.choices(WORDS.split(), k=9)), ink, ImageFont.load_default(15))
    return picture


def form(total: int) -> Image.Image:
    """A form of which one number alone differs."""
    picture = page(0)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((40, 780, 580, 830), fill="white", outline="gray")
    draw.text((60, 790), f"Total {total}", "black", ImageFont.load_default(24))
    return picture


def jpeg(picture: Image.Image, quality: int = 85) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def alike(first: Image.Image, second: Image.Image, strict: bool = True) -> bool:
    return same_details(prepared(first), prepared(second), strict)


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "poor": lambda picture: jpeg(picture, 30),
    "half": lambda picture: picture.resize((picture.width // 2, picture.height // 2)),
    "lighter": lambda picture: picture.point([min(255, level * 5 // 4) for level in range(256)] * 3),
    "gamma": lambda picture: picture.point([round(255 * (level / 255) ** 1.6) for level in range(256)] * 3),
    "turned": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "mirrored": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_of_a_page_is_one(kind: str) -> None:
    assert alike(jpeg(form(1234), 92), COPIES[kind](form(1234)))


@pytest.mark.parametrize("quality", [92, 40])
def test_one_other_number_makes_another_page(quality: int) -> None:
    assert not alike(jpeg(form(1234), quality), jpeg(form(1734), quality))
    assert not alike(page(1), page(2)) and not alike(page(1), page(1).resize((150, 212)))


def test_an_empty_sky_is_a_copy_of_the_same_light_alone() -> None:
    def sky(top: int) -> Image.Image:
        level = np.linspace(top, 230, 240)[:, None, None] + np.zeros((240, 320, 3))
        return Image.fromarray((level * [0.7, 0.85, 1.0]).astype(np.uint8))

    for copy in (jpeg(sky(150), 30), sky(150).resize((160, 120)), sky(150).transpose(Image.Transpose.ROTATE_180)):
        assert alike(sky(150), copy, strict=False)
    assert not alike(sky(150), sky(160), strict=False) and not alike(sky(150), sky(140), strict=False)


def test_a_cropped_bird_in_the_sky_is_a_copy_and_another_bird_is_not() -> None:
    def sky(x: int, size: int) -> Image.Image:
        level = np.linspace(180, 230, 240)[:, None, None] + np.zeros((240, 320, 3))
        picture = Image.fromarray((level * [0.8, 0.9, 1.0]).astype(np.uint8))
        ImageDraw.Draw(picture).ellipse((x, 90, x + size, 130), fill=(60, 50, 40))
        return picture

    bird = sky(120, 60)
    assert alike(bird, bird.crop((9, 5, 310, 232)), strict=False)
    assert alike(bird, bird.resize((80, 60)), strict=False)
    assert not alike(bird, sky(60, 60), strict=False) and not alike(bird, sky(120, 30), strict=False)


def test_pages_and_screens_have_strokes_and_photos_seldom() -> None:
    for made in (page(1), page(2, paper="#202124", ink="#e8eaed"), jpeg(form(1), 40), page(3, (320, 640))):
        assert picture_kind(made) == PLAIN | STROKES
    kinds = [picture_kind(Image.open(place).convert("RGB")) for place in sorted(sample.photos().glob("*.jpg"))[::20]]
    assert np.mean([kind & STROKES > 0 for kind in kinds]) < 0.1


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3000, 1), (8, 8)])
@pytest.mark.parametrize("strict", [True, False])
def test_tiny_and_thin_pictures_are_compared(size: tuple[int, int], strict: bool) -> None:
    """Blocks of eight pixels say nothing of a smaller one."""
    tiny, large = (Image.new("RGB", some, "white") for some in (size, (40, 30)))
    assert alike(tiny, tiny, strict) == (size == (8, 8))
    assert isinstance(alike(tiny, large, strict) and alike(large, tiny, strict), bool)


def test_a_copy_of_a_page_that_is_gone_is_alone(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    folder.mkdir()
    for at in range(3):
        page(at).save(folder / f"page{at}.jpg")
    index_gallery(gallery, folder, shard_rows=4)
    (folder / "page0.jpg").unlink()
    index_gallery(gallery, folder, forget=True)
    for at in range(2):
        page(at).save(folder / f"page{at} again.png")
    index_gallery(gallery, folder)
    assert grouped(gallery) == [["page1 again.png", "page1.jpg"]]


def test_pages_of_a_gallery_whose_hashes_say_no_kind_are_compared_with_new_ones(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    folder.mkdir()
    form(1000).save(folder / "form.png")
    index_gallery(gallery, folder)
    (place,) = gallery.glob(f"shards/*/{HASHES}")
    numbers = np.fromfile(place, "<u8").reshape(-1, COLUMNS)
    numbers[:, :2] &= np.uint64((1 << 63) - 1)
    write_hashes(place.parent, numbers.tolist())
    form(1000).save(folder / "form again.jpg", quality=60)
    form(1734).save(folder / "other.png")
    index_gallery(gallery, folder)
    assert grouped(gallery) == [["form again.jpg", "form.png"]]


# -- made copies of the sample photos are found, other photos are not, and no pair is missed for not comparing all


# The same three views of monuments stand twice among the sample photos, once in each of two collections.
TWINS = {
    ("categorization__brandenburgGate", "explore_monuments__germany_brandenburgGate"),
    ("categorization__colosseum", "explore_monuments__wonders_colosseum"),
    ("categorization__greatPyramid", "explore_monuments__egypt_greatPyramidOfGiza"),
}
HASHES_ONLY = Near(bits=8, cosine=2)


def cropped(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    return picture.crop((width // 50, height // 50, width - width // 50, height - height // 50))


NEAR_DUPLICATES_COPIES: dict[
    str, tuple[Callable[[Image.Image], Image.Image], float]
] = {  # and the share that hashes alone find
    "quarter": (lambda picture: picture.resize((picture.width // 4, picture.height // 4)), 1),
    "recompressed": (lambda picture: jpeg(picture, 20), 1),
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


@pytest.mark.parametrize("kind", NEAR_DUPLICATES_COPIES)
def test_copies_are_found(kind: str) -> None:
    change, share = NEAR_DUPLICATES_COPIES[kind]
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
