"""DINOv2's patches, on tiny models with random weights: which are chosen, where they are, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import requires
from tests.wording import raises

pytestmark = requires("torch")


@pytest.fixture(scope="module", params=["Dinov2", "Dinov2WithRegisters"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.dinov2(tmp_path_factory.mktemp("dino") / "model", request.param)


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8))


def by_hand(folder: Path, picture: Image.Image) -> tuple[Any, Any]:
    """Every patch and what the class token attends to it, row by row, for a picture of the model's own size."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    processor = transformers.BitImageProcessor(do_resize=False, do_center_crop=False)
    with torch.inference_mode():
        seen = model(processor(picture, return_tensors="pt")["pixel_values"], output_attentions=True)
    patches = seen.last_hidden_state[0, -16:]
    return (patches / patches.norm(dim=1, keepdim=True)).numpy(), seen.attentions[-1][0].mean(0)[0, -16:].numpy()


def test_the_patches_most_attended_to_come_first(folder: Path) -> None:
    picture = noise(56, 56)
    patches, attention = by_hand(folder, picture)

    features = rooms.load("descriptors", f"dinov2:{folder}", device="cpu").describe(picture, 5)

    order = np.argsort(-attention)[:5]
    np.testing.assert_allclose(features.descriptors.astype(np.float32), patches[order], atol=1e-3)
    np.testing.assert_array_equal(features.keypoints, np.stack([order % 4 * 14 + 7, order // 4 * 14 + 7], axis=1))
    assert (features.descriptors.dtype, features.keypoints.dtype) == (np.float16, np.float32)


@pytest.mark.parametrize(("size", "patches"), [((112, 56), 8), ((30, 90), 4), ((500, 1), 4)])
def test_a_picture_keeps_its_shape(folder: Path, size: tuple[int, int], patches: int) -> None:
    """The longer side becomes four patches."""
    features = rooms.load("descriptors", f"dinov2:{folder}", device="cpu").describe(noise(*size), 100)

    assert features.descriptors.shape == (patches, 32)
    assert features.keypoints.max() == 3.5 * 14


def test_other_weights_are_other_settings(folder: Path, tmp_path: Path) -> None:
    tiny_models.dinov2(tmp_path, seed=1)

    one, other = (rooms.load("descriptors", f"dinov2:{place}", device="cpu") for place in (folder, tmp_path))

    assert one.settings["weights"] != other.settings["weights"]
    assert (one.name, one.min_side) == (f"dinov2:{folder}", 56)


def test_what_is_no_dinov2_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CLIPModel"):
        rooms.load("descriptors", f"dinov2:{tiny_models.hf_clip(tmp_path)}", device="cpu")
    for name, kind in (("no/such", EyespotError), ("base", UsageError)):
        with raises(kind):
            rooms.load("descriptors", f"dinov2:{name}", device="cpu")
