from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

import eyespot
from eyespot import rooms, sample
from eyespot.gallery.describing import Describing, describe
from eyespot.search.collection import Collection
from tests.made_once import made_once
from tests.worlds import index_gallery

BRIDGE = "explore_monuments__france_pontduGard.jpg"


@pytest.fixture(scope="session")
def collection() -> Collection:
    """Fifty-one of the sample photos described by SIFT, and a blank one in which nothing stands out; nobody writes."""
    pytest.importorskip("cv2")
    return eyespot.open(made_once("described", make_described) / "gallery")


def make_described(folder: Path) -> None:
    (folder / "photos").mkdir()
    others = [place for place in sorted(sample.photos().glob("*.jpg")) if place.name != BRIDGE][::4][:50]
    for place in [*others, sample.photos() / BRIDGE]:
        (folder / "photos" / place.name).write_bytes(place.read_bytes())
    Image.new("RGB", (80, 60), "grey").save(folder / "photos" / "blank.png")
    index_gallery(folder / "gallery", folder / "photos", shard_rows=20)
    describe(folder / "gallery", rooms.load("descriptors", "sift"), Describing())
