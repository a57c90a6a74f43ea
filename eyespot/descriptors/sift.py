"""SIFT by OpenCV, compared as RootSIFT: corners and blobs with scale and direction, for the same thing seen again.

Lowe, Distinctive image features from scale-invariant keypoints (IJCV 2004); Arandjelović and Zisserman, Three things
everyone should know to improve object retrieval (CVPR 2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eyespot.types import LocalFeatures, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

SPELLING = "sift"
NEEDS = "the extra [local]; works offline"
SIDE = 1024  # pixels of the longer side; larger pictures are scaled down
DIM = 128
FULL = 512  # components of a unit vector of this form stay below a half: 512 times them fit a byte


def load(rest: str = "") -> Sift:
    """The extractor; needs no weights. `UsageError` for settings, of which it has none."""
    import cv2  # noqa: F401 - a missing package is told here, by name, and not at the first picture

    if rest:
        raise UsageError(f"sift has no settings; write sift and not sift:{rest}")
    return Sift()


@dataclass(frozen=True)
class Sift:
    """The keypoints of the strongest response, with RootSIFT descriptors as bytes; x, y, diameter and angle of each."""

    name: str = "sift"
    settings: Mapping[str, str | int | float] = field(default_factory=lambda: {"side": SIDE, "form": "root"})
    min_side: int | None = SIDE

    def describe(self, picture: Image, count: int) -> LocalFeatures:
        """At most `count` features: (n, 128) uint8 and (n, 4)."""
        import cv2

        scale = SIDE / max(picture.size)
        if scale < 1:
            width, height = (max(1, round(side * scale)) for side in picture.size)
            picture = picture.resize((width, height))
        grey = np.asarray(picture.convert("L"))  # (height, width)
        points, descriptors = cv2.SIFT.create(nfeatures=count).detectAndCompute(grey, None)
        if not points:
            return LocalFeatures(np.zeros((0, DIM), np.uint8), np.zeros((0, 4), np.float32))
        keypoints = np.array([(*point.pt, point.size, point.angle) for point in points], np.float32)  # (n, 4)
        responses = [point.response for point in points]
        # Best first; OpenCV's threads find equal ones in any order, so places decide then
        order = np.lexsort((*keypoints.T[::-1], -np.array(responses)))[:count]
        strongest = descriptors[order]
        # The square roots of each row's shares, times 512: comparing these compares the histograms by Hellinger
        shares = strongest / np.maximum(strongest.sum(axis=1, keepdims=True), 1e-12)
        root = np.minimum(np.rint(FULL * np.sqrt(shares)), 255).astype(np.uint8)
        return LocalFeatures(root, keypoints[order])
