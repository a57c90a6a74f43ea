"""Small folders of drawn photos, and a gallery made of them with the built-in encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eyespot import rooms
from eyespot.types import Encoder


def draw(place: Path, seed: int) -> Path:
    """A photo of its own for each seed: coloured stripes and a disc."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:90, 0:120]
    pixels = np.zeros((90, 120, 3), np.uint8)
    pixels[...] = rng.integers(0, 255, 3)
    pixels[(x // (3 + seed % 7)) % 2 == 0] = rng.integers(0, 255, 3)
    pixels[(x - 60) ** 2 + (y - 45) ** 2 < 900] = rng.integers(0, 255, 3)
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(place)
    return place


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Nine photos in a folder with a sub-folder."""
    folder = tmp_path / "photos"
    for seed in range(9):
        draw(folder / ("deep/er" if seed % 3 == 0 else "") / f"photo{seed}.jpg", seed)
    return folder


@pytest.fixture(scope="session")
def starter() -> Encoder:
    encoder: Encoder = rooms.load("encoders", "starter")
    return encoder
