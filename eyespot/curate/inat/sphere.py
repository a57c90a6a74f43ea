"""Positions on the Earth, without edges at the antimeridian or the poles."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

RADIUS = 6371.0088  # km, mean radius of the IUGG
Floats: TypeAlias = NDArray[np.float64]


def on_sphere(latitude: Floats, longitude: Floats) -> Floats:
    """Degrees as points of the unit sphere, (n,) and (n,) to (n, 3)."""
    up, along = np.radians(latitude), np.radians(longitude)
    flat = np.cos(up)
    return np.stack([flat * np.cos(along), flat * np.sin(along), np.sin(up)], axis=1)


def chord(km: float) -> float:
    """A great-circle distance as the straight line between two points of the unit sphere."""
    return 2 * math.sin(min(km / RADIUS, math.pi) / 2)


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Kilometres between two (latitude, longitude) in degrees, by the haversine formula."""
    (up, along), (up2, along2) = (tuple(math.radians(value) for value in place) for place in (one, other))
    half = math.sin((up2 - up) / 2) ** 2 + math.cos(up) * math.cos(up2) * math.sin((along2 - along) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(min(1.0, half)))


def equal_cells(latitude: Floats, longitude: Floats, degrees: float = 2.0) -> NDArray[np.int64]:
    """The number of the equal-area cell of each position, (n,): `degrees` wide at the equator, all of one area."""
    wide = round(360 / degrees)
    east = np.floor((longitude % 360.0) / degrees).astype(np.int64) % wide
    high = math.radians(degrees)
    north = np.floor((np.sin(np.radians(latitude)) + 1) / high).astype(np.int64)
    return north * wide + east


def spread(cells: NDArray[Any]) -> float:
    """How many cells a set of positions fills evenly: the exponential of the Shannon entropy of its cells."""
    if not len(cells):
        return 0.0
    counts = np.unique(cells, return_counts=True)[1]
    share = counts / counts.sum()
    return float(np.exp(-(share * np.log(share)).sum()))
