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
_PICTURES = 48  # that are held
_CROP, _COURSE = 30, 256  # a copy lacks so much of the course of light along a side, in so many steps, at most
_SMALL = 48  # pixels
_LEAST_CONTRAST = 24.0  # grey levels
_SIDEWAYS = (
    Image.Transpose.ROTATE_90,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSPOSE,
    Image.Transpose.TRANSVERSE,
)


def comparer(view: View, kinds: NDArray[np.uint8]) -> Callable[[NDArray[np.int64]], Mask]:
    """What says of pairs of rows, (pairs, 2), whether they are copies, (pairs,); not of files that are out of reach."""

    @lru_cache(_PICTURES)
    def read(row: int) -> tuple[str, Image.Image | None]:
        (facts,) = view.facts([row])
        picture = reread(facts["id"], facts["paths"], SIDE)
        return str(facts.get(WORDS) or ""), None if isinstance(picture, NotReread) else prepared(picture)

    def same(pairs: NDArray[np.int64]) -> Mask:
        found = np.zeros(len(pairs), bool)
        for at, pair in enumerate(pairs.tolist()):
            (text, first), (other_text, second) = map(read, pair)
            if first is not None and second is not None and _same_text(text, other_text):
                found[at] = same_details(first, second, strict=bool((kinds[pair] & STROKES).any()))
        return found

    return same


def _same_text(first: str, second: str) -> bool:
    """Whether two recognised texts may be of one page; a text that is not known speaks against nothing."""
    words = SequenceMatcher(None, first.split(), second.split(), autojunk=False)
    return not (first and second) or words.ratio() >= SIMILAR_TEXT


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
    second = _turned_like(first, second)
    if strict:
        small, large = sorted((first.width, second.width))
        return 2 * small >= large - 2 and _differ_by(first, second, STRICT)
    return (
        _differ_by(first, second, LOOSE)
        or _differ_by(_cropped(first, second), second, LOOSE)
        or _differ_by(first, _cropped(second, first), LOOSE)
    )


def _differ_by(first: Image.Image, second: Image.Image, limits: tuple[float, float]) -> bool:
    """Whether no block differs by more, in its pattern and as a whole."""
    small, large = sorted((first, second), key=lambda picture: picture.width * picture.height)
    both = (small, large.resize(small.size, Image.Resampling.LANCZOS))
    height, width = (size // BLOCK * BLOCK for size in (small.height, small.width))
    if not height or not width:
        return False
    a, b = (
        np.asarray(picture.filter(ImageFilter.GaussianBlur(1)), np.float64)[:height, :width] - picture_mean
        for picture, picture_mean in zip(both, (float(np.asarray(one).mean()) for one in both), strict=True)
    )
    # A lighter copy has another slope
    apart = (a - (a * b).mean() / max(float((b * b).mean()), 1e-9) * b).reshape(height // BLOCK, BLOCK, -1, BLOCK)
    contrast = max(_LEAST_CONTRAST, float(np.subtract(*np.percentile(a, [99, 1]))))
    pattern, whole = apart.std(axis=(1, 3)).max(), np.abs(apart.mean(axis=(1, 3))).max()
    return bool(pattern <= limits[0] * contrast and whole <= limits[1] * contrast)


def _cropped(whole: Image.Image, part: Image.Image) -> Image.Image:
    """What of the first picture the second may show, by the course of light along each side."""
    starts, ends = np.meshgrid(np.arange(_CROP + 1), np.arange(_COURSE - _CROP, _COURSE + 1))
    steps = (np.arange(_COURSE) + 0.5) / _COURSE
    at = starts.ravel()[:, None] + (ends - starts).ravel()[:, None] * steps - 0.5  # (crops, steps)
    edges = []
    for axis in (0, 1):
        a, b = (np.asarray(one.resize((_COURSE, _COURSE)), np.float64).mean(axis=axis) for one in (whole, part))
        seen = np.interp(at, np.arange(_COURSE), a)
        seen -= seen.mean(axis=1, keepdims=True)
        likeness = seen @ (b - b.mean()) / np.maximum(np.linalg.norm(seen, axis=1), 1e-9)
        best = int(likeness.argmax())
        edges.append((starts.ravel()[best] / _COURSE, ends.ravel()[best] / _COURSE))
    (left, right), (top, bottom) = edges
    width, height = whole.size
    return whole.crop((round(left * width), round(top * height), round(right * width), round(bottom * height)))


def _turned_like(first: Image.Image, second: Image.Image) -> Image.Image:
    """The turned or mirrored form of the second picture that is most like the first."""

    def pattern(picture: Image.Image) -> NDArray[np.float64]:
        small = np.asarray(picture.resize((_SMALL, _SMALL), Image.Resampling.BOX), np.float64)
        return np.asarray(small - small.mean())

    goal, square = pattern(first), first.width == first.height
    upright = (first.width > first.height) == (second.width > second.height)
    forms = [form for form in Image.Transpose if square or (form in _SIDEWAYS) != upright]
    made = [second.transpose(form) for form in forms] + ([second] if upright or square else [])
    return max(made, key=lambda picture: float((goal * pattern(picture)).sum()))
