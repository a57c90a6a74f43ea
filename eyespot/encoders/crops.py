"""`crops:N:ENCODER`: the mean of a picture's vector and those of N overlapping parts of it, in a space of its own.

Small things in a corner count for more so; embedding takes N + 1 times as long. Measured in docs/how/encoders.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot import rooms
from eyespot.encoders._pictures import PictureEncoder
from eyespot.types import Encoder, EncoderWithNotes, Pixels, TextLimited, UsageError, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

SPELLING = "crops:N:ENCODER"
NEEDS = "what ENCODER needs; N is 4, 5 or 9"
SIDE = 2 / 3  # of a part, as a share of the picture's
_CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
_EDGES = ((0.5, 0.0), (0.0, 0.5), (1.0, 0.5), (0.5, 1.0))
PLACES = {4: _CORNERS, 5: (*_CORNERS, (0.5, 0.5)), 9: (*_CORNERS, (0.5, 0.5), *_EDGES)}  # of parts: left, top


class Crops(PictureEncoder):
    """An encoder that also looks at parts; a part's place is a share of the room that it leaves."""

    def __init__(self, inner: Encoder, count: int) -> None:
        from PIL import Image

        wide, high = (inner.read(Image.new("RGB", size)) for size in ((96, 48), (48, 96)))
        if np.shape(wide) != np.shape(high):
            name = inner.space.encoder
            raise UsageError(f"{name} reads each picture in a shape of its own, so parts do not add up; index it whole")
        self.inner, self.places = inner, PLACES[count]
        space = inner.space
        preprocessing = f"{space.preprocessing}; mean with {count} parts of {SIDE:.3f} of each side"
        self.space = replace(space, encoder=f"crops:{count}:{space.encoder}", preprocessing=preprocessing)
        self.batch = max(1, inner.batch // 2)
        self.min_side = None if inner.min_side is None else math.ceil(inner.min_side / SIDE)
        self.licence = inner.licence

    @property
    def notes(self) -> Sequence[str]:
        """Those of the encoder."""
        return self.inner.notes if isinstance(self.inner, EncoderWithNotes) else ()

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture, whole and in parts, as the encoder reads each: (1 + N, ...)."""
        width, height = picture.size
        part = max(1, round(SIDE * width)), max(1, round(SIDE * height))
        corners = [(round(x * (width - part[0])), round(y * (height - part[1]))) for x, y in self.places]
        parts = [picture.crop((left, top, left + part[0], top + part[1])) for left, top in corners]
        return np.stack([self.inner.read(look) for look in (picture, *parts)])

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pictures (n, 1 + N, ...) to unit vectors (n, dim); NaN where a part has no vector."""
        n, parts = pixels.shape[:2]
        looks = self.inner.encode_pixels(pixels.reshape(n * parts, *pixels.shape[2:]))  # (n * (1 + N), dim)
        mean = looks.reshape(n, parts, -1 if n else self.space.dim).mean(axis=1, dtype=np.float64)  # (n, dim)
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts to unit vectors (n, dim), as the encoder has them."""
        return self.inner.encode_texts(texts)

    def caveat(self, text: str) -> str | None:
        """The encoder's own."""
        return self.inner.caveat(text)

    def tokens_in(self, text: str) -> int | None:
        """The encoder's own."""
        return self.inner.tokens_in(text)

    def cut(self, text: str) -> str | None:
        """The encoder's own."""
        return self.inner.cut(text) if isinstance(self.inner, TextLimited) else None


def load(rest: str = "", **options: Any) -> Crops:
    """The encoder after the second colon, with the options that it takes; `UsageError` for a wrong number of parts."""
    count, _, name = rest.partition(":")
    if not name or count not in map(str, PLACES):
        raise UsageError(f"write crops:N:ENCODER with N one of {', '.join(map(str, PLACES))}, as in crops:5:starter")
    if name.partition(":")[0] == "crops":
        raise UsageError("parts of parts are not looked at; write crops:5:starter")
    return Crops(rooms.load("encoders", name, **options), int(count))
