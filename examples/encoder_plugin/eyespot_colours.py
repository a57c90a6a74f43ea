"""The encoder `colours`: which of eight colours a picture has, and which of them a text names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL.Image import Image, Resampling

from eyespot.encoders import PictureEncoder, text_list
from eyespot.types import Pixels, Space, UsageError, Vectors

SPELLING = "colours"  # `eyespot encoders list` shows these two
NEEDS = "nothing more; works offline"
COLOURS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "red": (200, 30, 30),
    "green": (40, 140, 40),
    "blue": (60, 110, 200),
    "yellow": (230, 210, 50),
    "brown": (120, 80, 40),
    "grey": (128, 128, 128),
}
PALETTE = np.array([*COLOURS.values()], np.float32)  # (8, 3)
SIDE = 32


class Colours(PictureEncoder):
    """Pictures and the names of colours to unit vectors (n, 8)."""

    batch = 64
    min_side: int | None = SIDE
    licence = "Apache-2.0"
    # Raise the revision whenever other vectors come out.
    space = Space("colours", revision="1", weights=repr(COLOURS), preprocessing=f"{SIDE} pixels", dim=len(COLOURS))

    def read(self, picture: Image) -> Pixels:
        return np.asarray(picture.resize((SIDE, SIDE), Resampling.BOX))

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        colours = pixels.reshape(len(pixels), -1, 1, 3).astype(np.float32)
        nearest = ((colours - PALETTE) ** 2).sum(axis=-1).argmin(axis=-1)  # (n, SIDE * SIDE)
        shares = np.stack([(nearest == colour).mean(axis=1) for colour in range(len(COLOURS))], axis=1)
        return unit(shares)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        words = [text.lower().split() for text in text_list(texts)]
        return unit(np.array([[colour in word for colour in COLOURS] for word in words], np.float32) + 1e-3)

    def caveat(self, text: str) -> str | None:
        if set(text.lower().split()) & set(COLOURS):
            return None
        return f"colours understands only these words: {', '.join(COLOURS)}"


def unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def load(rest: str, **options: object) -> Colours:
    """The encoder; it has no variants and no options."""
    if rest or options:
        raise UsageError("the encoder 'colours' has no variants and takes no options: write just colours")
    return Colours()
