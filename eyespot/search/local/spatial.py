"""Spatial verification: how many matched keypoints of two pictures one homography explains.

Philbin et al., Object retrieval with large vocabularies and fast spatial matching (CVPR 2007), with RANSAC by OpenCV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import LocalFeatures, UsageError

ALWAYS = 4  # pairs of points that some homography fits whatever they are: no evidence


def load(ratio: str = "0.8") -> Spatial:
    """The check; `spatial:0.95` sets the ratio, `spatial:1` leaves that test out; `UsageError` if it is not a share."""
    import cv2  # noqa: F401 - a missing package is told here, by name, and not at the first pair

    try:
        share = float(ratio)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"the ratio of spatial is {ratio!r}; give a share, as in spatial:0.8")
    return Spatial(share)


@dataclass(frozen=True)
class Spatial:
    """The inliers of the best homography over mutual nearest neighbours, if more than the four that always fit.

    ratio: a match counts only if it is nearer than this share of the distance to the second nearest; 1: always.
    pixels: how far from its place a keypoint may lie, at the size the image was described at.
    """

    ratio: float = 0.8
    pixels: float = 5.0
    seed: int = 0

    def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
        """A whole number, 5 or more; 0 where no homography fits more than four matches."""
        import cv2

        of_query, of_image = mutual_matches(query, image, self.ratio)
        if len(of_query) <= ALWAYS:
            return 0.0
        cv2.setRNGSeed(self.seed)
        here, there = (np.ascontiguousarray(f.keypoints[at, :2]) for f, at in ((query, of_query), (image, of_image)))
        _, inliers = cv2.findHomography(here, there, cv2.RANSAC, self.pixels)
        count = 0 if inliers is None else int(inliers.sum())
        return float(count) if count > ALWAYS else 0.0


# -- which descriptor of one picture is most like which of another ----------------------------------------------------


def similarities(query: LocalFeatures, image: LocalFeatures) -> NDArray[np.float32]:
    """Cosines, (descriptors of the query, descriptors of the image)."""
    found: NDArray[np.float32] = unit(query.descriptors) @ unit(image.descriptors).T
    return found


def mutual_matches(
    query: LocalFeatures, image: LocalFeatures, ratio: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Descriptors that are each other's nearest, (matches,) of the query and of the image.

    Kept are those nearer than `ratio` times the distance to the image's second nearest, where there is a second.
    """
    alike = similarities(query, image)
    best = alike.argmax(axis=1)  # (query,)
    mutual = np.flatnonzero(alike.argmax(axis=0)[best] == np.arange(len(alike)))
    if ratio < 1 and alike.shape[1] > 1:
        second, first = np.partition(alike[mutual], -2, axis=1)[:, -2:].T
        # between unit vectors the squared distance is 2 - 2 cos
        mutual = mutual[np.maximum(1 - first, 0) < ratio**2 * (1 - second)]
    return mutual, best[mutual]


def unit(descriptors: NDArray[Any]) -> NDArray[np.float32]:
    """Descriptors as rows of unit length in float32."""
    rows: NDArray[np.float32] = descriptors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))  # (descriptors,)
    rows /= np.maximum(lengths, np.float32(1e-12))[:, None]
    return rows
