"""The map of a gallery on disk, `map/SPACE.npz` beside its shards: a point for each row, put in place whole.

It names the shards that it was made of with the digests of their vectors: rows of others are not on it yet. The file
follows from the gallery and can be made again, so it is neither published nor repaired.
"""

from __future__ import annotations

import json
import time
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.layout.clusters import Cells, cluster_cells
from eyespot.gallery.layout.embedding import Points, flat_map, trustworthiness
from eyespot.gallery.segments import members_of
from eyespot.gallery.view import View
from eyespot.kernels.kmeans import sample_rows
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.digests import sound_digests, text_digest
from eyespot.storage.locks import locked
from eyespot.types import NothingFound, Progress, Vectors, no_progress

FOLDER = "map"
NEIGHBOURS = 5
LANDMARKS = 20_000  # photos of the computed map that others are compared with
TOGETHER = 0.04  # of the map's side: neighbours this near to the nearest one draw, too
APART = 0.002  # of the map's side: at most this far a photo lies beside that place, so that none hides another
SAME = 1 - 1e-6  # the cosine from which two photos look the same
AT_ONCE = 1_024  # rows
SAMPLE = 50_000  # photos that a map is computed with; the others go to their neighbours

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class LayoutNotes:
    """How a map was made: its id, the seed, how many photos it was computed with, when, and how true it is.

    trust: the trustworthiness over the photos it was computed with, 0 to 1; None for one or two.
    """

    id: str
    seed: int
    computed: int
    made: float  # seconds since 1970
    trust: float | None


@dataclass(frozen=True)
class MapLayout:
    """A map: points (rows, 2) of the unit square, NaN for rows without one; and the cells of its clusters.

    shards: for each shard its number, its rows and the digest of its vectors, in the order of the rows.
    base: the rows that it was computed with.
    """

    notes: LayoutNotes
    shards: tuple[tuple[str, int, str], ...]
    points: Points
    base: NDArray[np.int64]
    cells: Cells

    def on(self, view: View) -> Points:
        """The points of a view's rows, (rows, 2); NaN for rows that are not on the map."""
        return self.follow(view).points

    def follow(self, view: View) -> MapLayout:
        """The same map for a gallery that has grown or lost shards since; what is new has no points yet."""
        shards = shard_keys(view)
        if shards == self.shards:
            return self
        # For each row of a view the row here, -1 for one that is new, (rows,)
        starts = dict(zip(self.shards, np.cumsum([0, *(rows for _, rows, _ in self.shards)]).tolist(), strict=False))
        parts = [np.zeros(0, np.int64)]
        for key in shard_keys(view):
            parts.append(starts[key] + np.arange(key[1]) if key in starts else np.full(key[1], -1))
        old = np.concatenate(parts)
        points = _nowhere(len(old))
        points[old >= 0] = self.points[old[old >= 0]]
        return replace(self, shards=shards, points=points, base=np.flatnonzero(np.isin(old, self.base)))


def _nowhere(rows: int) -> Points:
    return np.full((rows, 2), np.nan, np.float32)


def shard_keys(view: View) -> tuple[tuple[str, int, str], ...]:
    """What the shards of a view are known by: number, rows, and the digest of the vectors."""
    keys = []
    for shard, rows in zip(view.shards, np.diff(view.starts).tolist(), strict=True):
        name = f"{view.stem}.npy"
        status = (shard / name).stat() if (shard / name).exists() else None
        # Imported vectors may lie elsewhere and have no digest here.
        known = sound_digests(shard).get(name) or (f"{status.st_size:x}" if status else "")
        members = members_of(shard)  # a segment is the shards that it was made of, also for a map of those
        keys += [(one.name, one.rows, one.digests.get(name, known)) for one in members] or [(shard.name, rows, known)]
    return tuple(keys)


def place_of_layout(view: View) -> Path:
    """Where the map of a view lies."""
    return view.gallery.path / FOLDER / f"{view.stem}.npz"


# -- making -------------------------------------------------------------------------------------------------


def make_layout(view: View, *, seed: int = 0, sample: int = SAMPLE, progress: Progress = no_progress) -> MapLayout:
    """Compute the map of a gallery anew and store it. One photo of each group of copies and bursts counts.

    sample: with how many photos at most it is computed.

    Raises `NothingFound` for an empty gallery, `UsageError` where the library is missing, `EyespotError` if another
    process is making a map.
    """
    with locked(view.gallery.path / FOLDER):
        rows = np.flatnonzero(view.live)
        if not len(rows):
            place = view.gallery.path
            raise NothingFound(f"{place} has no photo to lay out; add some with: eyespot index PHOTOS -g {place}")
        rows = rows[Groups(view).first(rows)]
        rows = rows[sample_rows(len(rows), sample, seed)]
        vectors = view.vectors(rows)
        base = flat_map(vectors, seed, progress)
        points = _nowhere(int(view.starts[-1]))
        points[rows] = base
        trust = trustworthiness(vectors, base, seed)
        now = time.time()
        id = text_digest(view.stem, str(seed), str(now), str(len(rows)))[:12]
        notes = LayoutNotes(id, seed, len(rows), now, None if trust is None else round(trust, 4))
        layout = MapLayout(notes, shard_keys(view), points, rows, cluster_cells(base))
        return _stored(view, with_all(view, layout, progress))


def extend_layout(view: View, layout: MapLayout, progress: Progress = no_progress) -> MapLayout:
    """The map with the gallery's new photos, each placed by its neighbours, stored; what is on it stays where it is."""
    with locked(view.gallery.path / FOLDER):
        return _stored(view, with_all(view, layout.follow(view), progress))


def unplaced(view: View, layout: MapLayout) -> NDArray[np.int64]:
    """The rows that can be found and have no point, (n,)."""
    return np.flatnonzero(view.live & ~np.isfinite(layout.follow(view).points[:, 0]))


def with_all(view: View, layout: MapLayout, progress: Progress = no_progress) -> MapLayout:
    """The map, which must follow the view, with a point for each photo that has none yet; nothing is stored."""
    rows = np.flatnonzero(view.live & ~np.isfinite(layout.points[:, 0]))
    if not len(rows) or not len(layout.base):
        return layout
    marks = layout.base[sample_rows(len(layout.base), LANDMARKS, layout.notes.seed)]
    points = layout.points.copy()
    landmarks = Landmarks(view.vectors(marks), points[marks])
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        points[part] = landmarks.place(view.vectors(part), part)
        progress("placing", start + len(part), len(rows))
    return replace(layout, points=points)


# -- on disk ------------------------------------------------------------------------------------------------


def _stored(view: View, layout: MapLayout) -> MapLayout:
    place = place_of_layout(view)
    make_folder(place.parent)
    about = json.dumps({"format": 1, "shards": layout.shards, **asdict(layout.notes)}).encode()
    arrays: dict[str, Any] = {"points": layout.points, "base": layout.base, "cells": layout.cells}
    write_whole(place, lambda file: np.savez(file, about=np.frombuffer(about, np.uint8), **arrays))
    return layout


def read_layout(view: View) -> MapLayout | None:
    """The map of a view as it was stored last; None where there is none, or it cannot be read."""
    try:
        # numpy leaves a file open that it opened itself and that is cut.
        with place_of_layout(view).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(stored["about"].tobytes())
            shards = tuple((str(name), int(rows), str(digest)) for name, rows, digest in about["shards"])
            notes = LayoutNotes(*(about[name] for name in LayoutNotes.__dataclass_fields__))
            layout = MapLayout(notes, shards, stored["points"], stored["base"], stored["cells"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    fits = layout.points.shape == (sum(rows for _, rows, _ in shards), 2) and layout.cells.ndim == 2
    return layout if fits and about.get("format") == 1 else None


# -- where photos go that the map was not computed with: to their neighbours by look --------------------------------


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
        # A small step in a direction that follows from the row's number
        turns, far = (rows * 0.618033988749895) % 1 * 2 * np.pi, APART * np.sqrt((rows * 0.7548776662466927) % 1)
        aside = np.stack([far * np.cos(turns), far * np.sin(turns)], axis=1)
        return np.asarray(np.clip(means + aside, 0, 1), np.float32)
