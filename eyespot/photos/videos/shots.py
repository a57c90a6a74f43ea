"""One frame for each shot: where a video changes, and which frame shows what is between two changes.

Frames are compared by their colours. Of 693 pairs of views of one photo, moved, zoomed, lightened or with something new
in front, and 693 pairs of two photos, the limit takes 2 % of the first for a change and misses 2 % of the second
(docs/videos.md); perceptual hashes and small pictures mistake three to ten times as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

CHANGE = 0.4  # of the pixels have other colours
FIRST = 3  # samples of a shot, the sharpest of which stands for it: the first may lie in a fade
_HUES, _STEPS = 12, 4  # of the circle; of saturation and of light
Colours = NDArray[np.float64]  # (192,), shares that add up to 1


class Sample(Protocol):
    """A frame of a video as the rule sees it."""

    def colours(self) -> Colours: ...

    def sharpness(self) -> float: ...


AnySample = TypeVar("AnySample", bound=Sample)


def shots(samples: Iterable[AnySample]) -> Iterator[AnySample]:
    """One sample for each shot, in order; a view that moves on until nothing of it is left counts as another shot."""
    best: AnySample | None = None
    colours, count, sharpest = np.zeros(0), 0, 0.0
    for sample in samples:
        now = sample.colours()
        if best is not None and distance(colours, now) > CHANGE:
            yield best
            best = None
        if best is None:
            best, colours, count, sharpest = sample, now, 0, sample.sharpness()
        elif count < FIRST and (sharp := sample.sharpness()) > sharpest:
            best, colours, sharpest = sample, now, sharp
        count += 1
    if best is not None:
        yield best


def picture_colours(hsv: NDArray[np.uint8]) -> Colours:
    """The shares of the colours of a small picture in hue, saturation and value, (height, width, 3) → (192,)."""
    hue = hsv[..., 0].astype(np.int64) * _HUES // 256
    saturation, value = (hsv[..., at].astype(np.int64) * _STEPS // 256 for at in (1, 2))
    counts = np.bincount(((hue * _STEPS + saturation) * _STEPS + value).ravel(), minlength=_HUES * _STEPS * _STEPS)
    shares: Colours = counts / counts.sum()
    return shares


def distance(some: Colours, others: Colours) -> float:
    """The share of the pixels whose colour the other picture does not have, 0 to 1."""
    return float(1 - np.minimum(some, others).sum())
