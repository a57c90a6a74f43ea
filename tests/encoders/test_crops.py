"""`crops:N:ENCODER`: the mean of a whole picture and its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.encoders.crops import PLACES, Crops
from eyespot.types import UsageError
from tests.command import refuses, run_eyespot
from tests.wording import raises
from tests.worlds import make_gallery


class CornerEncoder:
    """A picture's vector is the colour of its first pixel and of its last one."""

    space = rooms.load("encoders", "starter").space
    batch = 16
    min_side: int | None = 100
    licence = "MIT"

    def read(self, picture: Image.Image) -> Any:
        shown = np.asarray(picture)
        return np.stack([shown[0, 0], shown[-1, -1]])

    def encode_pixels(self, pixels: Any) -> Any:
        flat = pixels.reshape(len(pixels), -1).astype(np.float32) + 1
        return flat / np.linalg.norm(flat, axis=1, keepdims=True)

    def encode_texts(self, texts: Any) -> Any:
        return np.ones((len(texts), 6), np.float32) / np.sqrt(6)

    def caveat(self, text: str) -> str | None:
        return "odd"

    def weakest_match(self, text: str) -> float | None:
        return 0.5


@pytest.mark.parametrize("count", PLACES)
def test_a_vector_is_the_mean_of_the_whole_and_its_parts(count: int) -> None:
    """Of 9 x 6 pixels, parts have 6 x 4: the first ones begin at columns 0 and 3 and rows 0 and 2."""
    shown = np.random.default_rng(0).integers(0, 255, (6, 9, 3), np.uint8)
    encoder, whole = Crops(CornerEncoder(), count), CornerEncoder()

    boxes = [(0, 0, 9, 6), (0, 0, 6, 4), (3, 0, 9, 4), (0, 2, 6, 6), (3, 2, 9, 6)]
    boxes += [(2, 1, 8, 5)] if count > 4 else []
    boxes += [(2, 0, 8, 4), (0, 1, 6, 5), (3, 1, 9, 5), (2, 2, 8, 6)] if count > 5 else []
    looks = [whole.read(Image.fromarray(shown).crop(box)) for box in boxes]
    mean = whole.encode_pixels(np.stack(looks)).mean(0)
    vector = encoder.encode_pixels(encoder.read(Image.fromarray(shown))[None])[0]

    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(list(PLACES)))
def test_parts_of_any_picture_are_pictures(width: int, height: int, count: int) -> None:
    assert Crops(CornerEncoder(), count).read(Image.new("RGB", (width, height))).shape == (count + 1, 2, 3)


def test_its_space_is_its_own() -> None:
    starter, five, nine = (rooms.load("encoders", name) for name in ("starter", "crops:5:starter", "crops:9:starter"))

    assert len({starter.space.digest, five.space.digest, nine.space.digest}) == 3
    assert five.space.encoder == "crops:5:starter"
    assert (five.min_side, five.weakest_match("a heron")) == (390, None)
    np.testing.assert_array_equal(five.encode_texts(["a heron"]), starter.encode_texts(["a heron"]))


@pytest.mark.parametrize(
    "spelling", ["crops", "crops:5", "crops:3:starter", "crops:x:starter", "crops:5:crops:5:starter"]
)
def test_what_makes_no_sense_is_refused(spelling: str) -> None:
    with raises(UsageError):
        rooms.load("encoders", spelling)


def test_an_encoder_of_pictures_in_their_own_shape_is_refused() -> None:
    class ShapedEncoder(CornerEncoder):
        def read(self, picture: Image.Image) -> Any:
            return np.asarray(picture)

    with pytest.raises(UsageError, match="parts"):
        Crops(ShapedEncoder(), 5)


@pytest.mark.long
def test_index_crops_adds_a_space_beside_the_first(tmp_path: Any) -> None:
    gallery = make_gallery(tmp_path, 3)

    indexed = run_eyespot("index", "--crops", 5, "-g", gallery)
    found = run_eyespot("search", "stripes", "-e", "crops:5:starter", "-g", gallery, "--paths")

    assert indexed.returncode == 0, indexed.stderr
    assert len(found.stdout.splitlines()) == 3, found.stderr
    refuses("index", "--crops", 3, "-g", gallery)
