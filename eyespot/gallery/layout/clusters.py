"""Where photos crowd on a map: hills of density on a grid of cells, each with the slopes that lead up to it.

As ToMATo does (Chazal et al. 2013): each cell belongs to the summit that the steepest way up leads to, and a summit
that rises little above the pass to a higher neighbour, or no more than chance makes it, belongs to that one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.layout.embedding import Points

Cells = NDArray[np.int16]  # (side, side): the number of the cluster, -1 between clusters; row y, column x
Density = NDArray[np.float64]

SIDES = (24, 256)  # of the grid, in cells
FINE = 1.8  # cells along a side for each photo along it, if they filled the square evenly
PASS = 0.9  # of the height of a summit: a pass at least as high joins it to its neighbour
SPREAD = 4 * math.pi  # cells that a smoothed count comes from: by so much it varies less than a count does
FLOOR = 0.02  # of the highest summit: what is lower lies between clusters
SMALLEST = 5  # photos of a cluster
MOST = 100  # clusters
BETWEEN = -1


def cluster_cells(points: Points) -> Cells:
    """The clusters of points (n, 2) in the unit square as a grid of their numbers, the largest first."""
    side = int(np.clip(math.sqrt(len(points)) * FINE, *SIDES))
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=side, range=[[0, 1], [0, 1]])
    # Blurred by a Gaussian of one cell's width
    weights, density = np.exp(-0.5 * np.arange(-3, 4) ** 2), counts
    for axis in (0, 1):
        density = np.apply_along_axis(np.convolve, axis, density, weights / weights.sum(), "same")
    # Among more photos more hills come by chance: ten times as many need another standard deviation.
    deviations = max(0.5, math.log10(max(1, len(points))) - 2)
    tops = _join_low_passes(density, _summits(density), deviations)
    tops[density < FLOOR * density.max(initial=0)] = BETWEEN
    # The clusters numbered from 0 by how many photos they have; those with too few lie between clusters
    numbers, index = np.unique(tops, return_inverse=True)
    sizes = np.bincount(index.ravel(), weights=counts.ravel(), minlength=len(numbers))
    sizes[numbers == BETWEEN] = 0
    order = np.argsort(-sizes, kind="stable")
    new = np.full(len(numbers), BETWEEN, np.int16)
    keep = [at for at in order.tolist() if sizes[at] >= SMALLEST][:MOST]
    new[keep] = np.arange(len(keep))
    return new[index.reshape(tops.shape)]


def cluster_of(points: Points, cells: Cells) -> NDArray[np.int16]:
    """The cluster of each point, (n,); -1 for those between clusters or without a place."""
    found = np.full(len(points), BETWEEN, np.int16)
    known = np.isfinite(points).all(axis=1)
    side = len(cells)
    at = np.clip((points[known] * side).astype(np.int64), 0, side - 1)
    found[known] = cells[at[:, 1], at[:, 0]]
    return found


def _summits(density: Density) -> NDArray[np.int64]:
    """For each cell the summit that the steepest way up leads to, as the number of its cell, (side, side)."""
    side = len(density)
    own = np.arange(side * side).reshape(side, side)
    best, height = own.copy(), density.copy()
    high, numbers = np.pad(density, 1, constant_values=-1), np.pad(own, 1, constant_values=-1)
    for down in range(3):
        for right in range(3):
            there = high[down : down + side, right : right + side]
            number = numbers[down : down + side, right : right + side]
            # Of equals the lower number counts, or two cells would lead to each other.
            higher = (there > height) | ((there == height) & (number >= 0) & (number < best))
            best, height = np.where(higher, number, best), np.where(higher, there, height)
    top = best.ravel()
    while not np.array_equal(further := top[top], top):
        top = further
    return top.reshape(side, side)


def _join_low_passes(density: Density, tops: NDArray[np.int64], deviations: float) -> NDArray[np.int64]:
    """The same with summits joined that rise too little above the pass between them."""
    heights, above = density.ravel(), {int(top): int(top) for top in np.unique(tops)}

    def summit(top: int) -> int:
        while above[top] != top:
            top = above[top]
        return top

    # The highest pass between each two neighbouring summits
    passes: dict[tuple[int, int], float] = {}
    for here, there in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        border = (tops[here] != tops[there]) & (np.minimum(density[here], density[there]) > 0)
        lower = np.minimum(density[here], density[there])[border].tolist()
        for one, other, height in zip(tops[here][border].tolist(), tops[there][border].tolist(), lower, strict=True):
            pair = (min(one, other), max(one, other))
            passes[pair] = max(passes.get(pair, 0.0), height)
    for height, one, other in sorted(((height, *pair) for pair, height in passes.items()), reverse=True):
        low, high = sorted((summit(one), summit(other)), key=lambda top: (heights[top], top))
        by_chance = deviations * math.sqrt(heights[low] / SPREAD)
        if low != high and height >= min(PASS * heights[low], heights[low] - by_chance):
            above[low] = high
    joined: NDArray[np.int64] = np.vectorize(summit, otypes=[np.int64])(tops)
    return joined
