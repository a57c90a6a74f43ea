"""Where photos go that the map was not computed with: to their neighbours by look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.layout.embedding import Points
from eyespot.gallery.view import View
from eyespot.types import Progress, Vectors, no_progress

NEIGHBOURS = 5
LANDMARKS = 20_000  # photos of the computed map that others are compared with
TOGETHER = 0.04  # of the map's side: neighbours this near to the nearest one draw, too
APART = 0.002  # of the map's side: at most this far a photo lies beside that place, so that none hides another
SAME = 1 - 1e-6  # the cosine from which two photos look the same
AT_ONCE = 1_024  # rows

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Landmarks:
    """Photos of the computed map: unit vectors (n, dim) and points (n, 2)."""

    vectors: Vectors
    points: Points

    def place(self, vectors: Vectors, rows: Rows) -> Points:
        """Points (rows, 2) for photos with these unit vectors (rows, dim); each depends on itself alone.

        A photo lies at the mean of those of its five nearest that are together on the map with the very nearest: the
        mean of two groups far apart would be a place that belongs to neither.
        """
        likeness = vectors @ self.vectors.T  # (rows, n)
        k = min(NEIGHBOURS, len(self.vectors))
        near = np.argpartition(-likeness, k - 1, axis=1)[:, :k]
        cosines = np.take_along_axis(likeness, near, axis=1)
        first = cosines.argmax(axis=1)
        places = self.points[near]  # (rows, k, 2)
        nearest = places[np.arange(len(rows)), first]  # (rows, 2)
        together = np.linalg.norm(places - nearest[:, None], axis=2) <= TOGETHER
        weights = np.where(together, np.maximum(cosines, 1e-3), 0)
        means = (places * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1, keepdims=True)
        means = np.where((cosines.max(axis=1) >= SAME)[:, None], nearest, means)
        return np.asarray(np.clip(means + _aside(rows), 0, 1), np.float32)


def _aside(rows: Rows) -> NDArray[np.float64]:
    """A small step in a direction that follows from the row's number, (rows, 2)."""
    turns = (rows * 0.618033988749895) % 1 * 2 * np.pi
    far = APART * np.sqrt((rows * 0.7548776662466927) % 1)
    return np.stack([far * np.cos(turns), far * np.sin(turns)], axis=1)


def place_all(view: View, rows: Rows, landmarks: Landmarks, progress: Progress = no_progress) -> Points:
    """Points (rows, 2) of many rows of a view, some at a time."""
    points = [np.zeros((0, 2), np.float32)]
    for start, part in _parts(rows):
        points.append(landmarks.place(view.vectors(part), part))
        progress("placing", start + len(part), len(rows))
    return np.concatenate(points)


def _parts(rows: Rows) -> Iterator[tuple[int, Rows]]:
    for start in range(0, len(rows), AT_ONCE):
        yield start, rows[start : start + AT_ONCE]
