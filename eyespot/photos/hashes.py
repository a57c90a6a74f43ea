"""What copies of a picture are known by: nine numbers, hashes of its light and dark and of its colours.

The hashes of a picture turned and mirrored follow from one transform, which no library offers
(docs/decisions/0009-owners.md has the numbers). A perceptual hash knows light and dark only. Eight numbers of colours
are the shares of red and green in a disc and two rings around the middle, and how much of the light the first two hold.
Turning, mirroring, scaling and re-encoding hardly change them. Neither sees letters: `PLAIN` areas or sharp `STROKES`
say whether copies have to be compared in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Hashes = NDArray[np.uint64]  # (pictures, 8): each upright, and in its seven turned and mirrored forms

FORMS = 8  # upright, turned and mirrored
COLUMNS = FORMS + 1  # the bytes of the ninth number are the colours
SIGNS = 8
PLAIN, STROKES = 1, 2  # each the highest bit, which no hash uses, of one of the first two hashes
_LEVEL = 6  # grey levels around the commonest of a tile that are one shade
_PLAIN_SHARE, _STROKE_SHARE = 0.6, 0.65  # of nine in ten photos less, of pages and screens more
_SIDE, _LOW = 32, 8  # pixels a side that are looked at, frequencies of each direction that count
_SMOOTH = 1e-3  # grey levels; what varies less than this has no pattern
_DARK = 4  # levels that are added, so that noise in the dark is not a colour
_FAR = np.hypot(*(np.mgrid[0:_SIDE, 0:_SIDE] - (_SIDE - 1) / 2)).ravel() / (_SIDE / 2)  # from the middle, (pixels,)
_RINGS = (_FAR < 0.45, (_FAR >= 0.45) & (_FAR < 0.8), _FAR >= 0.8)


def signature(picture: Image) -> tuple[int, ...]:
    """The nine numbers of an upright RGB picture."""
    hashes, kind = picture_hashes(picture), picture_kind(picture)
    hashes[:2] |= np.array([kind & PLAIN, kind // STROKES], np.uint64) << np.uint64(63)
    return (*hashes.tolist(), int(picture_colours(picture).view("<u8")[0]))


def picture_kind(picture: Image) -> int:
    """`PLAIN` for a picture of even areas, a page or a sky, `STROKES` for one of letters and lines, both, or 0."""
    from PIL import Image

    grey = picture.convert("L")
    grey.thumbnail((512, 512), Image.Resampling.BOX, reducing_gap=None)
    # Single pixels, for means would mix letters and paper
    tiles = np.asarray(grey.resize((128, 128), Image.Resampling.NEAREST), np.int64).reshape(8, 16, 8, 16)
    tiles = tiles.swapaxes(1, 2).reshape(64, -1) + 256 * np.arange(64)[:, None]
    counts = np.bincount(tiles.ravel(), minlength=64 * 256).reshape(64, 256).cumsum(axis=1)
    shade = np.pad(counts, ((0, 0), (1, 2 * _LEVEL)), mode="edge")
    shade[:, 0] = 0
    even = float((shade[:, 2 * _LEVEL + 1 :] - shade[:, : -2 * _LEVEL - 1]).max(axis=1).mean()) / 256
    levels = np.asarray(grey, np.int16)
    steps = np.maximum(np.abs(np.diff(levels[1:], axis=1)), np.abs(np.diff(levels[:, 1:], axis=0)))
    sharp = int((steps > 24).sum()) / max(1, int((steps > 8).sum()))
    return PLAIN * int(even >= _PLAIN_SHARE) + STROKES * int(sharp >= _STROKE_SHARE)


def picture_hashes(picture: Image) -> Hashes:
    """The perceptual hash of an upright picture and of its seven turned and mirrored forms, (8,), upright first.

    Grey, 32 by 32 pixels, cosine transform; of its 8 by 8 lowest frequencies each but the mean gives a bit, set where
    it is above their median (the pHash of Zauner 2010, but for the mean, which says only how bright a picture is).
    """
    from PIL import Image

    small = picture.convert("L").resize((_SIDE, _SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    grey = np.asarray(small, np.float64)
    # The lowest frequencies of the type II transform of a square, (8, 8)
    at = (np.arange(_SIDE) + 0.5) * np.pi / _SIDE
    waves = np.cos(np.arange(_LOW)[:, None] * at)  # (8, 32)
    low = np.asarray(waves @ grey @ waves.T)
    # Mirroring a picture turns the sign of its odd frequencies, and laying it on its side swaps the two
    # directions
    odd = np.where(np.arange(_LOW) % 2, -1, 1)
    mirrored = np.stack([low, low * odd, low * odd[:, None], low * odd * odd[:, None]])
    forms = np.stack([mirrored, mirrored.transpose(0, 2, 1)], axis=1).reshape(8, -1)  # (8, 64)
    varying = forms[:, 1:]
    if np.abs(varying).max() < _SMOOTH * _SIDE * _SIDE:
        return np.zeros(8, np.uint64)
    above = varying > np.median(varying, axis=1, keepdims=True)
    return np.packbits(np.pad(above, ((0, 0), (1, 0))), axis=1).view(">u8")[:, 0].astype(np.uint64)


def picture_colours(picture: Image) -> NDArray[np.uint8]:
    """The eight numbers of an upright RGB picture, 0 to 255, (8,)."""
    from PIL import Image

    small = picture.resize((_SIDE, _SIDE), Image.Resampling.BOX, reducing_gap=3.0)
    pixels = np.asarray(small, np.float64).reshape(-1, 3)
    means = np.stack([pixels[ring].mean(axis=0) for ring in _RINGS]) + _DARK  # (3, 3)
    light = means.sum(axis=1)
    shares = [*(means[:, :2] / light[:, None]).ravel(), *(light / light.sum())[:2]]
    return np.round(255 * np.array(shares)).astype(np.uint8)
