"""Whether pages, screens or skies that look alike are copies down to their letters, by blocks of the full pictures.

Hashes and vectors do not see what is written there, or which bird flies.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from eyespot.gallery.texts import WORDS
from eyespot.gallery.view import View
from eyespot.photos.hashes import STROKES
from eyespot.photos.places import NotReread, reread
from eyespot.types import Mask

SIDE = 1024  # pixels of a picture's longer side that are compared, at most
BLOCK = 8  # pixels
# What a block of a copy may differ by, in its pattern and as a whole, in shares of the picture's contrast. Re-encoded
# pages differ by 0.06, pages with another number in them by 0.3; photos that were cropped by 0.24, other photos by 0.3
STRICT, LOOSE = (0.12, 0.25), (0.25, 0.4)
SIMILAR_TEXT = 0.8  # of the recognised words of a copy agree
_PICTURES = 48  # in memory at once, a megabyte each
_CROP, _PROFILE = 30, 256  # a copy lacks so many of the steps of the profile of light along a side, at most
_SMALL = 48  # pixels
_LEAST_CONTRAST = 24.0  # grey levels
_NO_PATTERN, _SAME_LIGHT = 8.0, 3.0  # grey levels: at most beside a plain gradient; of blocks of a re-encoded copy


def comparer(view: View, kinds: NDArray[np.uint8]) -> Callable[[NDArray[np.int64]], Mask]:
    """What says of pairs of rows, (pairs, 2), whether they are copies, (pairs,); files out of reach are not copies."""

    @lru_cache(_PICTURES)
    def read(row: int) -> tuple[list[str], Image.Image | None]:
        (facts,) = view.facts([row])
        # The row of a picture that is gone has no path left
        picture = reread(facts["id"], facts["paths"], SIDE) if facts["paths"] else None
        found = None if picture is None or isinstance(picture, NotReread) else prepared(picture)
        return str(facts.get(WORDS) or "").split(), found

    def same(pairs: NDArray[np.int64]) -> Mask:
        found = np.zeros(len(pairs), bool)
        for at, pair in enumerate(pairs.tolist()):
            (words, first), (other_words, second) = map(read, pair)
            if first is not None and second is not None:
                # An unknown text rules nothing out
                text = SequenceMatcher(None, words if other_words else [], other_words if words else [], autojunk=False)
                strict = bool((kinds[pair] & STROKES).any())
                found[at] = text.ratio() >= SIMILAR_TEXT and same_details(first, second, strict=strict)
        return found

    return same


def prepared(picture: Image.Image) -> Image.Image:
    """An upright picture in grey, at most `SIDE` pixels wide and high."""
    grey = picture.convert("L")
    grey.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return grey


def same_details(first: Image.Image, second: Image.Image, strict: bool) -> bool:
    """Whether a picture is a copy of another, re-encoded, turned, mirrored or lighter; both `prepared`.

    strict: of pages and screens, whose copies are at least half as large, for in smaller ones no letter can be told.
    Others may be of any size, and a tenth of each side may be missing.
    """
    # The turned or mirrored form of the second picture that is most like the first
    goal, tiny = (picture.resize((_SMALL, _SMALL), Image.Resampling.BOX) for picture in (first, second))
    light = np.asarray(goal, np.float64) - np.asarray(goal).mean()
    turn = max(Image.Transpose, key=lambda turn: float((light * tiny.transpose(turn)).sum()))
    if (light * tiny.transpose(turn)).sum() > (light * tiny).sum():
        second = second.transpose(turn)
    if strict:
        small, large = sorted((first.width, second.width))
        return 2 * small >= large - 2 and _blocks_agree(first, second, STRICT)
    return (
        _blocks_agree(first, second, LOOSE)
        or _blocks_agree(_cropped(first, second), second, LOOSE, cropped=True)
        or _blocks_agree(first, _cropped(second, first), LOOSE, cropped=True)
    )


def _blocks_agree(
    first: Image.Image, second: Image.Image, limits: tuple[float, float], *, cropped: bool = False
) -> bool:
    """Whether no block differs by more, in its pattern and as a whole."""
    small, large = sorted((first, second), key=lambda picture: picture.width * picture.height)
    height, width = (size // BLOCK * BLOCK for size in (small.height, small.width))
    if not height or not width:
        return False
    both = (small, large.resize(small.size, Image.Resampling.LANCZOS))
    blurred = (np.asarray(picture.filter(ImageFilter.GaussianBlur(1)), np.float64) for picture in both)
    light, other_light = (levels[:height, :width] for levels in blurred)  # (height, width)
    a, b = (levels - levels.mean() for levels in (light, other_light))
    blocks = (height // BLOCK, BLOCK, -1, BLOCK)
    if np.abs(a - a.mean(axis=0) - a.mean(axis=1, keepdims=True)).max() < _NO_PATTERN:  # an empty sky has light alone
        return not cropped and bool(
            np.abs((light - other_light).reshape(blocks).mean(axis=(1, 3))).max() <= _SAME_LIGHT
        )
    slope = (a * b).mean() / max(float((b * b).mean()), 1e-9)  # a lighter copy has another one
    apart = (a - slope * b).reshape(blocks)
    contrast = max(_LEAST_CONTRAST, float(np.subtract(*np.percentile(a, [99, 1]))))
    pattern, whole = apart.std(axis=(1, 3)).max(), np.abs(apart.mean(axis=(1, 3))).max()
    return bool(pattern <= limits[0] * contrast and whole <= limits[1] * contrast)


def _cropped(whole: Image.Image, part: Image.Image) -> Image.Image:
    """What of the first picture the second may show, by the profiles of light along both sides."""
    starts, ends = (grid.ravel() for grid in np.meshgrid(range(_CROP + 1), range(_PROFILE - _CROP, _PROFILE + 1)))
    steps = (np.arange(_PROFILE) + 0.5) / _PROFILE
    at = starts[:, None] + (ends - starts)[:, None] * steps - 0.5  # (crops, steps)
    profiles = [np.asarray(one.resize((_PROFILE, _PROFILE)), np.float64) for one in (whole, part)]
    edges = []
    for axis, size in enumerate(whole.size):
        a, b = (levels.mean(axis=axis) for levels in profiles)  # along the width, then along the height
        seen = np.interp(at, np.arange(_PROFILE), a)
        seen -= seen.mean(axis=1, keepdims=True)
        best = int((seen @ (b - b.mean()) / np.maximum(np.linalg.norm(seen, axis=1), 1e-9)).argmax())
        edges.append((round(starts[best] / _PROFILE * size), round(ends[best] / _PROFILE * size)))
    (left, right), (top, bottom) = edges
    return whole.crop((left, top, right, bottom))
