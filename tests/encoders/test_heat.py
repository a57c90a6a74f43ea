"""Where an encoder sees something: planted photos, exact derivatives, patches whose loss costs the most."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms, sample
from eyespot.encoders.starter import likeliest
from eyespot.types import Localizer

PLANTED = {"a fish": "categorization__fish22", "a windmill": "categorization__windmill"}


@pytest.fixture(scope="module")
def starter() -> Any:
    return rooms.load("encoders", "starter")


def photo(name: str) -> Image.Image:
    return Image.open(sample.photos() / f"{name}.jpg").convert("RGB")


def beside(left: str, right: str) -> Image.Image:
    made = Image.new("RGB", (800, 400))
    for at, name in ((0, left), (400, right)):
        made.paste(photo(name).resize((400, 400)), (at, 0))
    return made


def share_on_the_left(values: Any) -> float:
    """Of what speaks for the query, how much lies in the left half; the middle column counts half to each side."""
    mass = np.maximum(values, 0).sum(0)
    half = len(mass) // 2
    middle = mass[half] / 2 if len(mass) % 2 else 0.0
    return float((mass[:half].sum() + middle) / mass.sum())


@pytest.mark.parametrize(("left", "right"), list(permutations(PLANTED, 2)))
def test_the_heat_of_words_lies_on_the_photo_that_they_name(starter: Any, left: str, right: str) -> None:
    (vector,) = starter.encode_texts([left])

    assert isinstance(starter, Localizer)
    assert share_on_the_left(starter.heat(beside(PLANTED[left], PLANTED[right]), vector).values) > 0.65


def test_the_heat_of_starter_is_the_derivative_of_its_score(starter: Any) -> None:
    picture, (query,) = photo("categorization__windmill"), starter.encode_texts(["a windmill"])
    features, logits, cells, weights = starter.located.run(None, {"pixels": starter.read(picture)[None]})
    bias = logits[0] - weights @ features[0]
    direction = cells[0, :, 2, 3] / 81

    def score(step: float) -> float:
        """The score of the picture with a little more of one cell."""
        moved = features[0].astype(np.float64) + step * direction
        meaning = likeliest((weights @ moved + bias)[None])[0] @ starter.joint["class_texts"]
        look = moved @ starter.joint["look_basis"]
        vector = np.concatenate([meaning / np.linalg.norm(meaning), 2 * look / np.linalg.norm(look)])
        return float(vector @ query / np.linalg.norm(vector))

    assert score(0) == pytest.approx(float(starter.encode_pixels(starter.read(picture)[None])[0] @ query), abs=1e-5)
    slope = (score(0.05) - score(-0.05)) / 0.1
    assert float(starter.heat(picture, query).values[2, 3]) == pytest.approx(slope, rel=0.02)


def test_vectors_of_the_network_with_more_outputs_are_the_same_to_the_last_bit(starter: Any) -> None:
    pixels = {"pixels": starter.read(photo("categorization__fish22"))[None]}

    features, logits, cells, _ = starter.located.run(None, pixels)
    plain = starter.images.run(None, pixels)

    assert np.array_equal(features, plain[0]) and np.array_equal(logits, plain[1])
    np.testing.assert_allclose(cells.mean((2, 3)), features, atol=1e-5)


def of_hub(kind: str, folder: Path) -> Any:
    return rooms.load("encoders", f"hf:{getattr(tiny_models, kind)(folder)}", device="cpu")


def clip(folder: Path) -> Any:
    return of_hub("hf_clip", folder)


def siglip(folder: Path) -> Any:
    return of_hub("hf_siglip", folder)


def naflex(folder: Path) -> Any:
    return of_hub("hf_naflex", folder)


def open_clip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")


@pytest.mark.parametrize("made", [clip, siglip, naflex, open_clip])
def test_the_heat_of_patches_lies_on_the_half_that_looks_like_the_query(made: Any, tmp_path: Path) -> None:
    """The query is what tells one texture from another; the picture has one of them left and the other right."""
    pytest.importorskip("torch")
    encoder, shares = made(tmp_path), []
    textures = [np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8) for seed in range(8)]
    whole = [encoder.encode_pixels(encoder.read(Image.fromarray(one))[None])[0] for one in textures]
    for left, right in permutations(range(8), 2):
        difference = whole[left] - whole[right]
        halves = np.concatenate([textures[left][:, :16], textures[right][:, 16:]], 1)
        heat = encoder.heat(Image.fromarray(halves), difference / np.linalg.norm(difference))
        assert heat.values.shape == (4, 4) and heat.values.dtype == np.float32
        shares.append(share_on_the_left(heat.values))

    # Measured: 0.59 of the pairs with CLIP's class token, which mixes much before the last block, 0.7 and more else
    assert np.mean(np.array(shares) > 0.5) > (0.55 if made is clip else 0.7)


def test_the_heat_of_a_patch_is_what_its_loss_costs_to_first_order(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    encoder, picture = siglip(tmp_path), tiny_models.pictures()[0]
    (query,) = encoder.encode_texts(["a heron"])
    pixels = torch.from_numpy(encoder.read(picture)[None])
    block = encoder.towers.patches(picture.size, pixels[0].numpy()).block

    def score(patch: int, step: float) -> float:
        """The score with one patch a little nearer to the mean patch."""

        def enter(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            tokens = given[0].clone()
            tokens[0, patch] += step * (given[0][0].mean(0) - given[0][0, patch])
            return (tokens, *given[1:])

        hook = block.register_forward_pre_hook(enter)
        vector = encoder.encode_pixels(pixels.numpy())[0].astype(np.float64)
        hook.remove()
        return float(vector @ query)

    heat = encoder.heat(picture, query).values.ravel()
    slopes = [(score(patch, -0.05) - score(patch, 0.05)) / 0.1 for patch in range(16)]
    np.testing.assert_allclose(heat, np.array(slopes) - np.mean(slopes), rtol=0.05, atol=2e-6)


def test_a_grid_covers_what_the_model_sees_of_a_wide_picture(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    wide, (query,) = Image.new("RGB", (80, 40), "red"), clip(tmp_path / "c").encode_texts(["a"])

    assert clip(tmp_path / "c").heat(wide, query).box == pytest.approx((0.25, 0, 0.75, 1))
    assert siglip(tmp_path / "s").heat(wide, np.zeros(32, np.float32)).box == (0, 0, 1, 1)
    assert open_clip(tmp_path / "o").heat(wide, np.zeros(16, np.float32)).box == pytest.approx((0.25, 0, 0.75, 1))
