"""Groups and draws of `eyespot.curate.inat` the slow and obvious way, for a few days and species."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.inat.sampling import RADIUS, Floats


def slow_groups(latitude: Floats, longitude: Floats, km: float) -> NDArray[np.int64]:
    """The group of each of a day's observations, (n,): the place of its first member. All pairs are compared."""
    near = great_circles(latitude, longitude) <= km  # (n, n)
    group = np.arange(len(latitude))
    while True:
        reached = np.where(near, group[None, :], len(group)).min(axis=1)  # the least number among neighbours
        if (reached == group).all():
            return group
        group = reached


def great_circles(latitude: Floats, longitude: Floats) -> Floats:
    """Kilometres between all pairs, (n, n), by the haversine formula."""
    up, along = np.radians(latitude), np.radians(longitude)
    half = np.sin((up[:, None] - up) / 2) ** 2
    half += np.cos(up)[:, None] * np.cos(up) * np.sin((along[:, None] - along) / 2) ** 2
    distances: Floats = 2 * RADIUS * np.arcsin(np.sqrt(np.clip(half, 0, 1)))
    return distances


def slow_turns(of: Sequence[NDArray[np.int64]], lots: NDArray[np.uint64], first: Sequence[int], cap: int) -> list[int]:
    """The observations drawn, in turn. `of` are cluster, group and observer of each, `first` the clusters in order."""
    cluster, group, observer = of
    left = {number: [row for row in range(len(cluster)) if cluster[row] == number] for number in first}
    groups: set[int] = set()
    observers: set[int] = set()
    drawn: list[int] = []
    while len(drawn) < cap and any(left.values()):
        for number in first:
            if len(drawn) < cap and left[number]:
                best = min(left[number], key=lambda row: (group[row] in groups, observer[row] in observers, lots[row]))
                left[number].remove(best)
                drawn.append(best)
                groups.add(int(group[best]))
                observers.add(int(observer[best]))
    return drawn
