"""Pictures of any shape as rows of one length, so that a batch is one array: height, width, then the pixels' bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image

from eyespot.types import Pixels

MOST_PIXELS = 1280 * 28 * 28  # what a picture may cost: 1,280 tokens of Qwen2-VL
MOST_RATIO = 20  # of the longer side to the shorter; narrower pictures get black edges, or the processors refuse them
HEAD = 8  # bytes of height and width


class ModelInput(NamedTuple):
    """One input of a model that reads both: a picture as `packed` made it, words, or the two together."""

    picture: Pixels | None
    words: str | None


def packed(picture: Image.Image) -> Pixels:
    """A picture, at most `MOST_PIXELS` large, as bytes (HEAD + 3 · MOST_PIXELS,)."""
    width, height = picture.size
    least = -(-max(width, height) // MOST_RATIO)
    if min(width, height) >= least:
        shrunk_picture = picture
    else:
        whole = Image.new("RGB", (max(width, least), max(height, least)))
        whole.paste(picture, ((whole.width - width) // 2, (whole.height - height) // 2))
        shrunk_picture = whole
    width, height = shrunk_picture.size
    if width * height <= MOST_PIXELS:
        shrunk = shrunk_picture
    else:
        scale = (MOST_PIXELS / (width * height)) ** 0.5
        shrunk = shrunk_picture.resize(
            (max(1, int(width * scale)), max(1, int(height * scale))), Image.Resampling.BICUBIC
        )
    pixels = np.asarray(shrunk, np.uint8)  # (height, width, 3)
    row: Pixels = np.zeros(HEAD + 3 * MOST_PIXELS, np.uint8)
    row[:HEAD] = np.array(pixels.shape[:2], "<u4").view(np.uint8)
    row[HEAD : HEAD + pixels.size] = pixels.reshape(-1)
    return row


def unpacked(row: Pixels) -> Image.Image:
    """The picture of such bytes."""
    height, width = np.ascontiguousarray(row[:HEAD]).view("<u4").tolist()
    return Image.fromarray(row[HEAD : HEAD + 3 * height * width].reshape(height, width, 3))
