"""Reference fingerprints: three pictures drawn by arithmetic and embedded with every space.

By them `eyespot doctor` tells whether this machine's encoder still gives the vectors the gallery was made with.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from eyespot.types import Encoder

SIDE = 256
LENGTH = 16  # leading components kept: enough to tell, short enough to read


def fingerprints(encoder: Encoder) -> list[list[float]]:
    """The leading components of the vectors of a gradient, a checkerboard and rings, rounded to six digits.

    Their pixels are made of integers, and are the same on every machine.
    """
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    rings = ((x - 128) ** 2 + (y - 128) ** 2) // 512 % 2 * 255
    planes = [
        np.stack([x, y, 255 - x], axis=-1),
        np.stack([(x // 32 + y // 32) % 2 * 255] * 3, axis=-1),
        np.stack([rings, 255 - rings, y], axis=-1),
    ]
    pixels = np.stack([encoder.read(Image.fromarray(plane.astype(np.uint8))) for plane in planes])
    return [[round(float(v), 6) for v in vector[:LENGTH]] for vector in encoder.encode_pixels(pixels)]
