"""Observation groups: what was seen on one day within a distance, directly or by way of others (single linkage).

Positions are sorted into cubes so small that all in one belong together; only pairs of near cubes are compared, and
those until the first pair that is near enough. So a city's thousand observations of a day cost no million distances.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-arg, call-overload, no-any-return, assignment"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.inat.sphere import Floats, chord, on_sphere
from eyespot.kernels import compile_loops
from eyespot.types import UsageError

NEAREST, FARTHEST = 0.05, 2000.0  # km: cubes are numbered with 21 bits on each axis
_BITS = 21
_REACH = 2  # cubes that two points within the distance may lie apart on each axis


def groups(segment: NDArray[np.int64], latitude: Floats, longitude: Floats, km: float = 10.0) -> NDArray[np.int64]:
    """The group of each observation, (n,): the place of the group's first one.

    `segment` (n,) is what only may share a group (the day, or species and day), sorted; positions are in degrees.
    Raises `UsageError` for a distance that is too small or large.
    """
    if not NEAREST <= km <= FARTHEST:
        raise UsageError(f"groups reach from {NEAREST} to {FARTHEST:g} km, not {km:g}")
    points = np.ascontiguousarray(on_sphere(latitude, longitude))  # (n, 3)
    limit = chord(km)
    return _groups(np.ascontiguousarray(segment), points, limit * limit, limit / math.sqrt(3) * (1 - 1e-9))


@compile_loops
def _groups(segment, points, limit, side):
    parent = np.arange(len(segment))
    start = 0
    for end in range(1, len(segment) + 1):
        if end == len(segment) or segment[end] != segment[start]:
            _link(points[start:end], parent[start:end], start, limit, side)
            start = end
    for row in range(len(parent)):  # parents stand before their children: one pass is enough
        parent[row] = parent[parent[row]]
    return parent


@compile_loops
def _link(points, parent, offset, limit, side):
    """Join the points of one segment; `parent` holds places counted from the whole's beginning."""
    keys = np.empty(len(points), np.int64)
    for row in range(len(points)):
        keys[row] = _key(points[row], side)
    order = np.argsort(keys, kind="mergesort")
    cubes, ends = _cubes(keys, order)
    first = 0
    for cube in range(len(cubes)):
        for at in range(first + 1, ends[cube]):
            _join(parent, offset, order[first], order[at])
        first = ends[cube]
    for cube in range(len(cubes)):
        _link_near(points, parent, (offset, cube), (order, cubes, ends), limit)


@compile_loops
def _key(point, side):
    key = np.int64(0)
    for axis in range(3):
        key = (key << _BITS) + np.int64((point[axis] + 1.0) / side)
    return key


@compile_loops
def _cubes(keys, order):
    """Numbers of the cubes that hold something, ascending, and where each ends in the order."""
    cubes, ends = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    count = 0
    for at in range(len(order)):
        if count == 0 or cubes[count - 1] != keys[order[at]]:
            cubes[count] = keys[order[at]]
            count += 1
        ends[count - 1] = at + 1
    return cubes[:count], ends[:count]


@compile_loops
def _link_near(points, parent, where, sorted_, limit):
    """Join a cube with those after it that points within the limit may lie in."""
    offset, cube = where
    order, cubes, ends = sorted_
    one, two = np.int64(1) << _BITS, np.int64(1) << (2 * _BITS)
    for x in range(0, _REACH + 1):
        for y in range(-_REACH, _REACH + 1):
            row = cubes[cube] + x * two + y * one
            if row < cubes[cube]:
                continue
            low = row - _REACH if row > cubes[cube] else row + 1
            near = np.searchsorted(cubes, low)
            while near < len(cubes) and cubes[near] <= row + _REACH:
                if near > cube:
                    _link_cubes(points, parent, (offset, cube, near), (order, ends), limit)
                near += 1


@compile_loops
def _link_cubes(points, parent, which, sorted_, limit):
    offset, cube, near = which
    order, ends = sorted_
    begin = 0 if cube == 0 else ends[cube - 1]
    if _root(parent, offset, order[begin]) == _root(parent, offset, order[ends[near - 1]]):
        return
    for one in range(begin, ends[cube]):
        a = points[order[one]]
        for other in range(ends[near - 1], ends[near]):
            b = points[order[other]]
            if (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2 <= limit:
                _join(parent, offset, order[one], order[other])
                return


@compile_loops
def _root(parent, offset, row):
    while parent[row] != row + offset:
        above = parent[row] - offset
        parent[row] = parent[above]
        row = above
    return row


@compile_loops
def _join(parent, offset, one, other):
    """The earlier root stays, so that a group is called by its first observation."""
    one, other = _root(parent, offset, one), _root(parent, offset, other)
    if one < other:
        parent[other] = one + offset
    elif other < one:
        parent[one] = other + offset
