"""Which descriptor of one picture is most like which of another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import LocalFeatures


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
    keep = mutual[_stands_out(alike[mutual], ratio)]
    return keep, best[keep]


def unit(descriptors: NDArray[Any]) -> NDArray[np.float32]:
    """Descriptors as rows of unit length in float32."""
    rows: NDArray[np.float32] = descriptors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))  # (descriptors,)
    rows /= np.maximum(lengths, np.float32(1e-12))[:, None]
    return rows


def _stands_out(alike: NDArray[np.float32], ratio: float) -> NDArray[np.bool_]:
    if alike.shape[1] < 2 or ratio >= 1:
        return np.ones(len(alike), bool)
    second, first = np.partition(alike, -2, axis=1)[:, -2:].T
    # between unit vectors the squared distance is 2 - 2 cos
    mask: NDArray[np.bool_] = np.maximum(1 - first, 0) < ratio**2 * (1 - second)
    return mask
