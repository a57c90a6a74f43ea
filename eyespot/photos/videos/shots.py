"""One frame for each shot: where a video changes, and which frame shows what is between two changes.

Frames are compared by their colours. Of 693 pairs of views of one photo, moved, zoomed, lightened or with something new
in front, and 693 pairs of two photos, the limit takes 2 % of the first for a change and misses 2 % of the second
(docs/how/videos.md); perceptual hashes and small pictures mistake three to ten times as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

CHANGE = 0.4  # of the pixels have other colours
FIRST = 3  # samples of a shot, the sharpest of which stands for it: the first may lie in a fade
_HUES, _STEPS = 12, 4  # of the circle; of saturation and of light
Colours = NDArray[np.float64]  # (192,), shares that add up to 1


class VideoSample:
    """A frame at a time in milliseconds; `picture` is upright."""

    def __init__(self, ms: int, frame: Any, aspect: float) -> None:
        self.ms, self.frame, self.aspect = ms, frame, aspect

    def colours(self) -> Colours:
        """The shares of its colours in hue, saturation and value."""
        hsv = np.asarray(self.frame.reformat(64, 48, "rgb24").to_image().convert("HSV"))  # (height, width, 3)
        hue = hsv[..., 0].astype(np.int64) * _HUES // 256
        saturation, value = (hsv[..., at].astype(np.int64) * _STEPS // 256 for at in (1, 2))
        counts = np.bincount(((hue * _STEPS + saturation) * _STEPS + value).ravel(), minlength=_HUES * _STEPS * _STEPS)
        shares: Colours = counts / counts.sum()
        return shares

    def sharpness(self) -> float:
        """How much neighbouring pixels differ."""
        grey = self.frame.reformat(320, 240, "gray").to_ndarray().astype(np.int16)
        return float(np.abs(np.diff(grey, axis=0)).mean() + np.abs(np.diff(grey, axis=1)).mean())

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its picture."""
        width, height = max(1, round(self.frame.width * self.aspect)), self.frame.height
        return (height, width) if round(self.frame.rotation) % 180 == 90 else (width, height)

    def picture(self) -> Image:
        """The frame in RGB, with square pixels and upright."""
        from PIL.Image import Transpose

        image: Image = self.frame.to_image()
        if self.aspect != 1:
            image = image.resize((max(1, round(image.width * self.aspect)), image.height))
        turns = {90: Transpose.ROTATE_90, 180: Transpose.ROTATE_180, 270: Transpose.ROTATE_270}
        turn = turns.get(round(self.frame.rotation) % 360)
        return image if turn is None else image.transpose(turn)


def shots(samples: Iterable[VideoSample]) -> Iterator[VideoSample]:
    """One sample for each shot, in order; a view that moves on until nothing of it is left counts as another shot."""
    best: VideoSample | None = None
    colours, count, sharpest = np.zeros(0), 0, 0.0
    for sample in samples:
        now = sample.colours()
        # The share of the pixels whose colour the other picture does not have
        if best is not None and 1 - np.minimum(colours, now).sum() > CHANGE:
            yield best
            best = None
        if best is None:
            best, colours, count, sharpest = sample, now, 0, sample.sharpness()
        elif count < FIRST and (sharp := sample.sharpness()) > sharpest:
            best, colours, sharpest = sample, now, sharp
        count += 1
    if best is not None:
        yield best
