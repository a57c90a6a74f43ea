"""What torch computes on a card gives what the processor gives. Each test runs on the processor as well, and skips on
`cuda` without a card; `make test-gpu` runs those of a card. Exact and approximate search have no path for a card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.adapters.quari.scoring import AdaptedIndex
from tests.adapters.test_scoring import bent, clustered
from tests.lazy_import import lazy_import, requires

torch = lazy_import("torch")
loop = lazy_import("eyespot.adapters.quari.training.loop")
pytestmark = requires("torch")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA card")
    return str(request.param)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_an_adapted_scan_of_several_chunks_changes_no_answer(device: str, kind: type) -> None:
    """140,000 rows are more than a chunk; a filter, equal rows and rows of zeros are among them."""
    rng = np.random.default_rng(5)
    vectors = clustered(rng, 140_000, 24).astype(kind)
    vectors[100:160], vectors[::977] = vectors[99], 0
    views = [bent(name, rng, vectors, 6) for name in ("gaussian", "principal", "anchored")]
    blocks, allowed = [vectors[:90_000], vectors[90_000:]], rng.random(140_000) < 0.6

    found = AdaptedIndex(blocks, patience=0).on(torch.device(device)).search(views, 100, allowed)

    plain = AdaptedIndex(blocks, patience=float("inf")).search(views, 100, allowed)
    assert np.array_equal(found.rows, plain.rows) and np.array_equal(found.scores, plain.scores)


def test_an_encoder_gives_vectors_of_one_space(device: str, tmp_path: Path) -> None:
    """Half precision on a card, float32 on a processor: the same direction to a hundredth."""
    pytest.importorskip("transformers")
    folder = tiny_models.hf_clip(tmp_path / "clip")
    pictures: list[Image.Image] = tiny_models.pictures()
    there, here = (rooms.load("encoders", f"hf:{folder}", device=name) for name in (device, "cpu"))

    def vectors(encoder: Any) -> Any:
        pixels = [encoder.read(picture) for picture in pictures]
        return np.concatenate([encoder.encode_pixels(pixels), encoder.encode_texts(["a heron", "no"])])

    found = vectors(there)
    assert found.dtype == np.float32
    assert (np.einsum("nd,nd->n", found, vectors(here)) > 0.99).all()
