"""The map of a gallery as pages show it: a point for each photo, the clusters with their names, and regions of it.

A region is part of a search's address. It names the map that it was drawn on, for on another one it would be of other
photos: `MAP:x,y,x,y,…` is a polygon, in 65,535ths of the map's side, and `MAP:cN` is cluster N.
"""

from __future__ import annotations

import re
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, ref
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.layout.clusters import BETWEEN, cluster_of
from eyespot.gallery.layout.embedding import Points
from eyespot.gallery.layout.stored import MapLayout, place_of_layout, read_layout, unplaced, with_all
from eyespot.storage.digests import text_digest
from eyespot.types import Mask, UsageError
from eyespot.web.found.facets import facets_of
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded

AT_ONCE = 5_000  # new photos that are placed when somebody looks; more need a run of their own
STEPS = 65_535  # of a side, in what browsers get
COLOURS = 10  # values of a column that have a colour each; then come others, and none
OTHERS, UNKNOWN = COLOURS, COLOURS + 1
TYPICAL = 0.15  # share of a cluster's photos from which a value may name it
ABOUT_FILES = re.compile("licen[cs]e|author|owner|source|copyright|rights|camera|photographer|provider", re.I)
REGION = re.compile(r"([0-9a-f]{12}):(?:c([0-9]{1,3})|([0-9]{1,5}(?:,[0-9]{1,5}){5,399}))")


class ShownMap:
    """The map of a snapshot: the photos that are on it, in the order of their rows."""

    def __init__(self, snapshot: Snapshot, layout: MapLayout, waiting: int) -> None:
        # Weak, for the maps are kept by their snapshots, which would then hold themselves.
        self._snapshot, self.layout, self.waiting = ref(snapshot), layout, waiting
        known = snapshot.view.live & np.isfinite(layout.points[:, 0])
        self.rows = np.flatnonzero(known)  # (photos,)
        self.points: Points = layout.points[self.rows]  # (photos, 2)
        self.clusters_of = cluster_of(self.points, layout.cells)  # (photos,)
        self._columns: dict[str, Coded] = {}
        self._clusters: dict[str | None, list[dict[str, Any]]] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that this is the map of, which whoever asks still holds."""
        snapshot = self._snapshot()
        assert snapshot is not None
        return snapshot

    @cached_property
    def version(self) -> str:
        """What an address carries, so that places in the list of photos mean what they meant, and colours too."""
        rows = f"{len(self.rows)} {crc32(self.rows.tobytes()):08x}"
        return text_digest(self.layout.notes.id, rows, self.snapshot.version)

    def packed(self) -> bytes:
        """x and y of each photo as numbers of 16 bits, little-endian, in 65,535ths of the side."""
        return np.round(self.points * STEPS).astype("<u2").tobytes()

    # -- labels -----------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> list[str]:
        """The columns of labels that points can be coloured by, the one that best tells the clusters apart first.

        What tells where a file comes from, such as a licence, stands last: it is not what photos show.
        """
        sizes = np.bincount(self.clusters_of[self.clusters_of != BETWEEN])

        def apart(name: str) -> float:
            """The information about the clusters, by the share of their photos in one with a name of its own."""
            named = int(sizes[list(self._names(self.column(name)))].sum())
            return self._information(name) * named / max(1, int(sizes.sum()))

        return sorted(facets_of(self.snapshot).coded, key=lambda name: (bool(ABOUT_FILES.search(name)), -apart(name)))

    def column(self, name: str) -> Coded:
        """A column by its name, over the photos of the map; `UsageError` if it is none of labels."""
        if name not in self._columns:
            if (coded := facets_of(self.snapshot).coded.get(name)) is None:
                raise UsageError(f"no column of labels {name!r}; there are: {', '.join(self.columns) or 'none'}")
            self._columns[name] = Coded(coded.values, coded.codes[self.rows].astype(np.int64))
        return self._columns[name]

    def legend(self, name: str) -> list[tuple[str, int]]:
        """The commonest values of a column with their counts, each of which has a colour."""
        column = self.column(name)
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
        order = np.argsort(-counts, kind="stable")[:COLOURS]
        return [(column.values[at], int(counts[at])) for at in order.tolist() if counts[at]]

    def colours(self, name: str) -> bytes:
        """The colour of each photo by a column, one byte each: a place in the legend, others or unknown."""
        column = self.column(name)
        place = np.full(len(column.values) + 1, OTHERS, np.uint8)
        for at, (value, _) in enumerate(self.legend(name)):
            place[column.values.index(value)] = at
        place[-1] = UNKNOWN
        return place[column.codes].tobytes()

    def _information(self, name: str) -> float:
        """The mutual information of a column and the clusters in nats, less what chance alone gives (Miller 1955)."""
        codes, clusters = self.column(name).codes, self.clusters_of
        both = (codes >= 0) & (clusters != BETWEEN)
        if not both.any():
            return 0.0
        table = _table(codes[both], clusters[both])
        shares = table / table.sum()
        expected = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
        there = shares > 0
        information = float((shares[there] * np.log(shares[there] / expected[there])).sum())
        freedom = (np.count_nonzero(table.sum(axis=1)) - 1) * (np.count_nonzero(table.sum(axis=0)) - 1)
        return (information - freedom / (2 * float(table.sum()))) * float(both.mean())

    # -- clusters ---------------------------------------------------------------------------------------------

    def clusters(self, column: str | None) -> list[dict[str, Any]]:
        """The clusters, the largest first, named by the values of a column that are typical of each.

        A name stands on one cluster alone. Where a cluster has none, the other columns are tried that say what photos
        show.
        Each has its number, its middle (x, y), how many photos, its name, the share of them that are that, and the
        place in the map of the photo nearest to the middle (`typical`).
        """
        if column in self._clusters:
            return self._clusters[column]
        names: dict[int, tuple[str, float]] = {}
        for one in [column, *self.columns] if column else []:
            if one and (one == column or not ABOUT_FILES.search(one)):
                given = {name for name, _ in names.values()}
                more = self._names(self.column(one))
                names = {number: named for number, named in more.items() if named[0] not in given} | names
        found = []
        for number in range(int(self.clusters_of.max(initial=BETWEEN)) + 1):
            photos = np.flatnonzero(self.clusters_of == number)
            if not len(photos):
                continue
            middle: NDArray[Any] = np.median(self.points[photos], axis=0)
            typical = photos[np.square(self.points[photos] - middle).sum(axis=1).argmin()]
            x, y = self.points[typical].tolist()
            name, share = names.get(number, ("", None))
            place = {"number": number, "x": round(x, 5), "y": round(y, 5), "photos": len(photos)}
            found.append(place | {"name": name, "share": share, "typical": int(typical)})
        self._clusters[column] = found
        return found

    def _names(self, column: Coded) -> dict[int, tuple[str, float]]:
        """The value whose share in a cluster says most against its share everywhere, and that share.

        Of clusters with the same name the largest has it: one name on ten clusters tells none of them apart.

        The weight of a value is p log(p / q), with p its share of the cluster and q that of the map: the part that it
        has in the relative entropy of the two, as words are weighed by tf-idf.
        """
        known = (column.codes >= 0) & (self.clusters_of != BETWEEN)
        if not known.any():
            return {}
        table = _table(column.codes[known], self.clusters_of[known])  # (values, clusters)
        every = np.bincount(column.codes[column.codes >= 0], minlength=len(table)) / (column.codes >= 0).sum()
        sizes = np.bincount(self.clusters_of[self.clusters_of != BETWEEN])
        names: dict[str, tuple[int, float]] = {}
        for number in np.flatnonzero(table.sum(axis=0)).tolist():
            share = table[:, number] / table[:, number].sum()
            weight = share * np.log(np.maximum(share, 1e-12) / np.maximum(every[: len(share)], 1e-12))
            of_all = table[:, number] / sizes[number]  # also of those without a label: few must not speak for many
            best = int(weight.argmax())
            if of_all[best] < TYPICAL or share[best] < min(2 * every[best], (1 + every[best]) / 2):
                continue
            # Clusters are numbered by size
            names.setdefault(column.values[best], (number, round(float(of_all[best]), 3)))
        return {number: (name, share) for name, (number, share) in names.items()}

    # -- regions ----------------------------------------------------------------------------------------------

    def within(self, region: str) -> Mask:
        """The rows of the snapshot in a region, (rows,); `UsageError` for one that is none, or of another map."""
        match = REGION.fullmatch(region)
        if match is None:
            raise UsageError("a region is what the map's lasso gives, such as 0123456789ab:100,100,900,100,500,900")
        if match[1] != self.layout.notes.id:
            raise UsageError("the map was made anew since this region was drawn; open the map and draw it again")
        if match[2]:
            inside = self.clusters_of == int(match[2])
        else:
            corners = np.array(match[3].split(","), np.float64)
            if len(corners) % 2:
                raise UsageError("a region has an x and a y for each corner; draw it on the map again")
            inside = in_polygon(np.round(self.points * STEPS), corners.reshape(-1, 2))
        mask: Mask = np.zeros(len(self.snapshot.view.live), bool)
        mask[self.rows[inside]] = True
        return mask

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The places of rows in the list of photos, in their order; rows that are not on the map are left out."""
        place = np.searchsorted(self.rows, rows)
        there = place < len(self.rows)
        there[there] = self.rows[place[there]] == rows[there]
        return place[there].astype(np.uint32)


def in_polygon(points: NDArray[Any], corners: NDArray[Any]) -> Mask:
    """Whether each point (n, 2) lies in a polygon (corners, 2), by the even-odd rule, (n,)."""
    x, y = points[:, 0].astype(np.float64), points[:, 1].astype(np.float64)
    inside: Mask = np.zeros(len(points), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y1 != y2:
            inside ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside


def _table(codes: NDArray[Any], clusters: NDArray[np.int16]) -> NDArray[np.float64]:
    """How many photos have each value in each cluster, (values, clusters)."""
    width = int(clusters.max()) + 1
    counts = np.bincount(codes * width + clusters, minlength=(int(codes.max()) + 1) * width)
    return counts.reshape(-1, width).astype(np.float64)


# -- the map of a snapshot --------------------------------------------------------------------------------------

_MAPS: WeakKeyDictionary[Snapshot, tuple[int, ShownMap]] = WeakKeyDictionary()
_OPENING = Lock()


def map_of(snapshot: Snapshot) -> ShownMap | None:
    """The map of a snapshot, opened once; None if nobody has made one. A few new photos are placed right away."""
    place = place_of_layout(snapshot.view)
    try:
        stamp = place.stat().st_mtime_ns
    except OSError:
        return None
    with _OPENING:
        known = _MAPS.get(snapshot)
        if known is None or known[0] != stamp:
            layout = read_layout(snapshot.view)
            if layout is None:
                return None
            layout = layout.follow(snapshot.view)
            waiting = len(unplaced(snapshot.view, layout))
            if waiting <= AT_ONCE and len(layout.base):
                layout, waiting = with_all(snapshot.view, layout), 0
            _MAPS[snapshot] = known = (stamp, ShownMap(snapshot, layout, waiting))
        return known[1]


def region_mask(snapshot: Snapshot, region: str) -> Mask:
    """The rows in a region of the map, (rows,). `UsageError` where there is no map, or it is of another one."""
    shown = map_of(snapshot)
    if shown is None:
        raise UsageError("there is no map that this region could be of; make one at /map, or leave the region out")
    return shown.within(region)
