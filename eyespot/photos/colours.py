"""From whatever a decoder gives to RGB: 16 and 32 bits, grey, CMYK and palettes, over white where it is transparent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LARGE = 25_000_000  # pixels; what has more goes to RGB strip by strip and may be reduced on the way
_STRIP = 2_000_000


def to_rgb(image: Image.Image, factor: int = 1) -> Image.Image:
    """A picture in RGB, averaged down by `factor` if it is large."""
    if image.width * image.height <= LARGE:
        return _rgb(image)
    source = _stretched(image) if image.mode in ("I", "F") else image
    made = Image.new("RGB", reduced(image.size, factor))
    for top, strip in _strips(source, factor):
        part = _rgb(strip)
        made.paste(part.reduce(factor) if factor > 1 else part, (0, top // factor))
    return made


def reduced(size: tuple[int, int], factor: int) -> tuple[int, int]:
    """The size of a picture of which `factor` by `factor` pixels became one."""
    return -(-size[0] // factor), -(-size[1] // factor)


def conversion_bytes(image: Image.Image, factor: int) -> int:
    """The peak of `to_rgb` besides the image itself, its result included."""
    pixels = image.width * image.height
    each = 9 if image.has_transparency_data else 5 if image.mode.startswith("I;16") else 4
    if pixels <= LARGE and image.mode not in ("I", "F"):
        return each * pixels
    strip = image.width * _rows(image.width, factor)
    grey = (pixels + 12 * min(strip, pixels)) if image.mode in ("I", "F") else 0
    if pixels <= LARGE:
        return each * pixels + grey
    width, height = reduced(image.size, factor)
    return 4 * width * height + (each + 4) * strip + grey


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        # Pillow would cut off every value above 255; this keeps the high byte, as it does for 16-bit colour
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        return _stretched(image).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        white = Image.new("RGB", layer.size, "white")
        white.paste(layer, mask=layer.getchannel("A"))
        return white
    return image.convert("RGB")


def _stretched(image: Image.Image) -> Image.Image:
    """32-bit pictures have no agreed white: their darkest value becomes black, their brightest white, NaN black."""
    ends = [(known.min(), known.max()) for _, rows in _arrays(image) for known in map(_finite, rows) if known.size]
    darkest, brightest = (float(min(e[0] for e in ends)), float(max(e[1] for e in ends))) if ends else (0.0, 0.0)
    grey = Image.new("L", image.size)
    for top, rows in _arrays(image) if brightest > darkest else ():
        out = np.zeros(rows.shape, np.uint8)  # (height of the strip, width)
        for row, made in zip(rows, out, strict=True):
            made[np.isfinite(row)] = ((_finite(row) - darkest) * (255.0 / (brightest - darkest))).round()
        grey.paste(Image.fromarray(out), (0, top))
    return grey


def _finite(row: NDArray[Any]) -> NDArray[np.float64]:
    known: NDArray[np.float64] = row[np.isfinite(row)].astype(np.float64)
    return known


# -- strips -------------------------------------------------------------------------------------------------


def _rows(width: int, factor: int) -> int:
    """The height of a strip: whole squares of `factor` by `factor` pixels."""
    return max(1, _STRIP // (width * factor)) * factor


def _strips(image: Image.Image, factor: int) -> Iterator[tuple[int, Image.Image]]:
    """A picture cut across, from the top down, and where each strip begins."""
    rows = _rows(image.width, factor)
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(image.height, top + rows)))


def _arrays(image: Image.Image) -> Iterator[tuple[int, NDArray[Any]]]:
    return ((top, np.asarray(strip)) for top, strip in _strips(image, 1))  # (height of the strip, width) each
