"""Observation groups, and the draw of a species' share from them.

A group is what was seen on one day within a distance, directly or by way of others (single linkage). A day's points
are sorted from south to north, and each is compared with those of the band that follows it.

A species' groups lie in spatio-temporal clusters, each of which gives one observation in turn: of a new group, then of
a new observer, where there is one, then by a lot that depends only on the seed and the observation's id.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-arg, call-overload, no-any-return, assignment"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels import compile_loops
from eyespot.kernels.kmeans import GOLDEN, mixed
from eyespot.settings.build import InatSettings
from eyespot.types import UsageError

RADIUS = 6371.0088  # km, mean radius of the IUGG
Floats: TypeAlias = NDArray[np.float64]


def on_sphere(latitude: Floats, longitude: Floats) -> Floats:
    """Degrees as points of the unit sphere, (n,) and (n,) to (n, 3)."""
    up, along = np.radians(latitude), np.radians(longitude)
    flat = np.cos(up)
    return np.stack([flat * np.cos(along), flat * np.sin(along), np.sin(up)], axis=1)


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


NEAREST, FARTHEST = 0.05, 2000.0  # km


def groups(segment: NDArray[np.int64], latitude: Floats, longitude: Floats, km: float = 10.0) -> NDArray[np.int64]:
    """The group of each observation, (n,): the place of the group's first one.

    `segment` (n,) is what only may share a group (the day, or species and day), sorted; positions are in degrees.
    Raises `UsageError` for a distance that is too small or large.
    """
    if not NEAREST <= km <= FARTHEST:
        raise UsageError(f"groups reach from {NEAREST} to {FARTHEST:g} km, not {km:g}")
    points = np.ascontiguousarray(on_sphere(latitude, longitude))  # (n, 3)
    straight = 2 * math.sin(min(km / RADIUS, math.pi) / 2)  # the distance through the unit sphere
    return _groups(np.ascontiguousarray(segment), points, straight)


@compile_loops
def _groups(segment, points, limit):
    parent = np.arange(len(segment))
    start = 0
    for end in range(1, len(segment) + 1):
        if end == len(segment) or segment[end] != segment[start]:
            order = start + np.argsort(points[start:end, 2], kind="mergesort")
            for at in range(len(order)):
                a = points[order[at]]
                for later in range(at + 1, len(order)):
                    b = points[order[later]]
                    if b[2] - a[2] > limit:
                        break
                    if (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2 <= limit * limit:
                        _join(parent, order[at], order[later])
            start = end
    for row in range(len(parent)):  # parents stand before their children: one pass is enough
        parent[row] = parent[parent[row]]
    return parent


@compile_loops
def _root(parent, row):
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@compile_loops
def _join(parent, one, other):
    """The earlier root stays, so that a group is called by its first observation."""
    one, other = _root(parent, one), _root(parent, other)
    if one < other:
        parent[other] = one
    elif other < one:
        parent[one] = other


Marks = NDArray[np.uint64]


@dataclass(frozen=True)
class SpeciesObservations:
    """The observations of one species, in an order that depends only on their ids."""

    mark: Marks  # (n,), 64 bits of the digest of each id
    observer: Marks  # (n,)
    group: NDArray[np.int64]  # (n,)
    latitude: Floats  # (n,), degrees
    longitude: Floats
    day: NDArray[np.int64]  # (n,), days since 1970


@dataclass(frozen=True, slots=True)
class DrawResult:
    """The cluster of each candidate, and its turn from 0; -1: not drawn."""

    cluster: NDArray[np.int64]  # (n,)
    turn: NDArray[np.int64]  # (n,)


def draw(species: int, of: SpeciesObservations, how: InatSettings) -> DrawResult:
    """Up to `how.cap` of a species' candidates."""
    group = np.unique(of.group, return_inverse=True)[1].astype(np.int64)
    cluster = clusters(group, of, how)[group]  # (n,)
    observer = np.unique(of.observer, return_inverse=True)[1].astype(np.int64)
    if len(group) <= how.cap:
        lots = np.argsort(lots_of(of.mark, how.seed), kind="stable")
        turn = np.empty(len(group), np.int64)
        turn[lots] = np.arange(len(group))
        return DrawResult(cluster, turn)
    count = int(cluster.max()) + 1
    names = np.arange(count, dtype=np.uint64) + np.uint64(species) * np.uint64(1_000_003)
    first = np.argsort(lots_of(names, how.seed), kind="stable")
    return DrawResult(cluster, round_robin((cluster, group, observer), lots_of(of.mark, how.seed), first, how.cap))


def lots_of(marks: Marks, seed: int) -> Marks:
    """A lot for each mark, (n,): SplitMix64 over mark and seed, the same on every machine."""
    with np.errstate(over="ignore"):
        return mixed((marks ^ mixed(np.full(1, seed % 2**64, np.uint64) + GOLDEN)) + GOLDEN)


def clusters(group: NDArray[np.int64], of: SpeciesObservations, how: InatSettings) -> NDArray[np.int64]:
    """The cluster of each of a species' groups, (groups,).

    A group stands at the middle of the species' observations in it, one unit being `how.space_km` or `how.time_days`.
    The centres are its most central group and then, over and over, the one farthest from all centres (Gonzalez 1985).
    """
    counts = np.bincount(group)[:, None]
    points = np.stack([np.bincount(group, axis) for axis in on_sphere(of.latitude, of.longitude).T], axis=1) / counts
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    days = np.bincount(group, of.day - of.day.min()) / counts[:, 0]
    placed = np.concatenate([points * (RADIUS / how.space_km), days[:, None] / how.time_days], axis=1)  # (groups, 4)
    first = int(((placed - placed.mean(axis=0)) ** 2).sum(axis=1).argmin())
    return _farthest_first(np.ascontiguousarray(placed), first, how.clusters)


@compile_loops
def _farthest_first(points, first, most):
    nearest = np.full(len(points), np.inf)  # squared distance of each point to its centre
    cluster = np.zeros(len(points), np.int64)
    centre = first
    for number in range(most):
        farthest, distance = 0, -1.0
        for at in range(len(points)):
            away = 0.0
            for axis in range(4):
                away += (points[at, axis] - points[centre, axis]) ** 2
            if away < nearest[at]:
                nearest[at], cluster[at] = away, number
            if nearest[at] > distance:
                farthest, distance = at, nearest[at]
        if distance <= 1.0:
            break
        centre = farthest
    return cluster


def round_robin(of: tuple[Any, Any, Any], lots: Marks, first: NDArray[np.int64], cap: int) -> NDArray[np.int64]:
    """The turn of each observation, -1 for those not drawn, (n,).

    `of` are cluster, group and observer of each as numbers from 0, `first` the clusters in the order of their turns.
    """
    cluster, group, observer = (np.ascontiguousarray(numbers, np.int64) for numbers in of)
    order = np.argsort(cluster, kind="stable")
    ends = np.cumsum(np.bincount(cluster, minlength=len(first)))
    return _round_robin((order, ends, first), (group, observer), lots, cap)


@compile_loops
def _round_robin(clusters, of, lots, cap):
    order, ends, first = clusters
    group, observer = of
    turn = np.full(len(order), -1, np.int64)
    known_group = np.zeros(group.max() + 1, np.bool_)
    known_observer = np.zeros(observer.max() + 1, np.bool_)
    drawn, before = 0, -1
    while drawn < cap and drawn != before:
        before = drawn
        for number in first:
            begin = 0 if number == 0 else ends[number - 1]
            best = _best(order[begin : ends[number]], turn, (group, observer), (known_group, known_observer), lots)
            if best >= 0 and drawn < cap:
                turn[best] = drawn
                known_group[group[best]] = known_observer[observer[best]] = True
                drawn += 1
    return turn


@compile_loops
def _best(members, turn, of, known, lots):
    """The member not drawn that is newest, by lot among the equally new; -1 for none."""
    best, least = -1, 4
    for row in members:
        if turn[row] >= 0:
            continue
        old = 2 * known[0][of[0][row]] + known[1][of[1][row]]
        if old < least or (old == least and lots[row] < lots[best]):
            best, least = row, old
    return best
