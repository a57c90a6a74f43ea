"""The colours of a picture in eight numbers, which turning, mirroring, scaling and re-encoding hardly change.

A perceptual hash knows light and dark only: two drawings of one shape in other colours have one hash. The numbers are
the shares of red and green in a disc and two rings around the middle, and how much of the light the first two hold, so
that a lighter or darker copy keeps them, too.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

    from eyespot.types import Mask

SIGNS = 8
_SIDE = 32  # pixels a side that are looked at
_DARK = 4  # levels that are added, so that noise in the dark is no colour


def picture_colours(picture: Image) -> NDArray[np.uint8]:
    """The eight numbers of an upright RGB picture, 0 to 255, (8,)."""
    from PIL import Image

    small = picture.resize((_SIDE, _SIDE), Image.Resampling.BOX, reducing_gap=3.0)
    pixels = np.asarray(small, np.float64).reshape(-1, 3)
    means = np.stack([pixels[ring].mean(axis=0) for ring in _rings()]) + _DARK  # (3, 3)
    light = means.sum(axis=1)
    shares = [*(means[:, :2] / light[:, None]).ravel(), *(light / light.sum())[:2]]
    return np.round(255 * np.array(shares)).astype(np.uint8)


@cache
def _rings() -> tuple[Mask, Mask, Mask]:
    """A disc and two rings around the middle of the square, (pixels,) each."""
    y, x = np.mgrid[0:_SIDE, 0:_SIDE]
    middle = (_SIDE - 1) / 2
    far = np.hypot(x - middle, y - middle).ravel() / (_SIDE / 2)
    return far < 0.45, (far >= 0.45) & (far < 0.8), far >= 0.8
