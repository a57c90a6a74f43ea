"""SIFT on drawn pictures: strongest first, in pixels, the same every time, and nothing where nothing stands out."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from eyespot import rooms, sample
from eyespot.descriptors.sift import SIDE
from eyespot.search.local.spatial import unit
from tests.lazy_import import requires

pytestmark = requires("cv2")


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.open(sample.photos() / "explore_monuments__france_pontduGard.jpg").convert("RGB")


def test_places_of_a_large_picture_are_those_at_the_size_it_was_described_at() -> None:
    picture = Image.new("RGB", (2 * SIDE, SIDE), "white")
    ImageDraw.Draw(picture).circle((SIDE, SIDE // 4), 80, "black")

    (strongest, *_) = rooms.load("descriptors", "sift").describe(picture, 1).keypoints

    assert strongest[:2] == pytest.approx([SIDE / 2, SIDE / 8], abs=2)


def test_fewer_are_the_first_of_more(photo: Image.Image) -> None:
    sift = rooms.load("descriptors", "sift")

    few, many = sift.describe(photo, 40), sift.describe(photo, 400)

    assert (len(few.descriptors), len(many.descriptors)) == (40, 400)
    np.testing.assert_array_equal(few.descriptors, many.descriptors[:40])
    np.testing.assert_array_equal(few.keypoints, many.keypoints[:40])


def test_descriptors_are_bytes_of_nearly_unit_length(photo: Image.Image) -> None:
    descriptors = rooms.load("descriptors", "sift").describe(photo, 100).descriptors

    assert (descriptors.dtype, descriptors.shape) == (np.uint8, (100, 128))
    assert np.linalg.norm(descriptors / 512, axis=1) == pytest.approx(1, abs=0.01)
    assert np.linalg.norm(unit(descriptors), axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (4000, 1), (64, 64)])
def test_nothing_stands_out_in_a_blank_picture(size: tuple[int, int]) -> None:
    features = rooms.load("descriptors", "sift").describe(Image.new("RGB", size, "grey"), 10)

    assert (features.descriptors.shape, features.keypoints.shape) == ((0, 128), (0, 4))
