"""Small real worlds that tests share: drawn photos, galleries of them, vectors without photos."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from eyespot import rooms, sample
from eyespot.types import Encoder
from tests.made_once import made_once

STARTER = ("starter",)


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


def draw_photos(folder: Path, count: int = 4, *, name: str = "{}.jpg") -> Path:
    """A folder with `count` drawn photos, 0.jpg and so on."""
    for seed in range(count):
        draw(folder / name.format(seed), seed)
    return folder


def index_gallery(gallery: Path, *roots: object, encoders: Iterable[str | Encoder] = STARTER, **options: Any) -> Any:
    """What `eyespot index ROOTS -g GALLERY` does in this process, and its summary; options are those of `Options`."""
    from eyespot.gallery.indexing import Options, index

    loaded = [rooms.load("encoders", one) if isinstance(one, str) else one for one in encoders]
    return index(gallery, [str(root) for root in roots], loaded, Options(**options))


def make_gallery(folder: Path, count: int = 4, **options: Any) -> Path:
    """`folder/gallery` of the drawn photos in `folder/photos`."""
    index_gallery(folder / "gallery", draw_photos(folder / "photos", count), **options)
    return folder / "gallery"


def second_encoder() -> str:
    """The name of another encoder beside the built-in one: tiny towers in a folder; skips where no export is made."""
    import pytest  # the worlds are made without it where an extra is tried alone

    from tests.worlds import plain_exports

    pytest.importorskip("onnx")
    return f"onnx:{made_once('second-encoder', lambda place: plain_exports.save(place / 'clip', 'clip')) / 'clip'}"


def copy_of_sample_gallery(place: Path) -> Path:
    """A gallery of the 208 sample photos where they lie, which are indexed once."""
    made = made_once("sample", lambda folder: index_gallery(folder / "gallery", sample.photos()))
    return Path(shutil.copytree(made / "gallery", place))


def tar(place: Path, members: dict[str, bytes]) -> Path:
    """An archive of these files."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(place, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    return place
