"""Small exports written by hand, and their groups and draws the slow and obvious way."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import sample
from eyespot.curate.inat.curating import Curated, curate
from eyespot.curate.inat.sampling import RADIUS, Floats
from eyespot.settings.build import InatSettings

SPARROW, TIT, GENUS = "10", "20", "5"
TAXA = (
    {"taxon_id": "1", "ancestry": "", "rank_level": "70", "rank": "kingdom", "name": "Animalia", "active": "true"},
    {"taxon_id": "3", "ancestry": "1", "rank_level": "50", "rank": "class", "name": "Aves", "active": "true"},
    {"taxon_id": GENUS, "ancestry": "1/3", "rank_level": "20", "rank": "genus", "name": "Passer", "active": "true"},
    {"taxon_id": SPARROW, "ancestry": "1/3/5", "rank_level": "10", "rank": "species", "name": "Passer domesticus",
     "active": "true"},
    {"taxon_id": "11", "ancestry": "1/3/5/10", "rank_level": "5", "rank": "subspecies",
     "name": "Passer domesticus indicus", "active": "true"},
    {"taxon_id": TIT, "ancestry": "1/3", "rank_level": "10", "rank": "species", "name": "Parus major",
     "active": "true"},
)  # fmt: skip


def tsv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A gzipped table of the export; None is an empty field."""
    several = list(rows)
    lines = ["\t".join(several[0])] + ["\t".join("" if v is None else str(v) for v in row.values()) for row in several]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def seen(id: str, **more: Any) -> dict[str, Any]:
    """An observation that passes every filter, but for what is said otherwise."""
    base = {"observation_uuid": id, "observer_id": "7", "latitude": 50.0, "longitude": 8.0, "positional_accuracy": 10}
    return base | {"taxon_id": SPARROW, "quality_grade": "research", "observed_on": "2022-05-01"} | more


def photo(observation: str, number: int, **more: Any) -> dict[str, Any]:
    """A photo that passes, but for what is said otherwise."""
    base = {"photo_uuid": f"photo-{number}", "photo_id": number, "observation_uuid": observation, "observer_id": "7"}
    return base | {"extension": "jpg", "license": "CC-BY", "width": 10, "height": 10, "position": 0} | more


def species(id: str, name: str, active: str = "true") -> dict[str, str]:
    """A taxon of the genus of sparrows."""
    return {"taxon_id": id, "ancestry": "1/3/5", "rank_level": "10", "rank": "species", "name": name, "active": active}


def export(
    folder: Path,
    observations: list[dict[str, Any]],
    photos: list[dict[str, Any]] | None = None,
    taxa: Iterable[dict[str, str]] = (),
) -> Path:
    """An export of these observations, each with one photo unless photos are given, and of more taxa if wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    each = [photo(one["observation_uuid"], at) for at, one in enumerate(observations)] if photos is None else photos
    tsv(folder / "observations.csv.gz", observations)
    tsv(folder / "photos.csv.gz", each)
    tsv(folder / "taxa.csv.gz", [*TAXA, *taxa])
    tsv(folder / "observers.csv.gz", [{"observer_id": "7", "login": "ann", "name": 'Ann "Bird" Lee'}])
    return folder


def pictures() -> list[Path]:
    return sorted(sample.photos().glob("explore_world_animals__*.jpg"))


def silent(_what: str, _done: int, _total: int) -> None:
    """Tells nobody."""


def dropped(done: Curated) -> dict[str, dict[str, int]]:
    """Reasons and counts by step, where there are any."""
    return {one["step"]: dict(one["dropped"]) for one in done.steps if one["dropped"]}


def coco(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "train.json").read_text(encoding="utf-8"))
    return found


def collect(folder: Path, observations: list[dict[str, Any]], *more: Any, **settings: Any) -> Curated:
    """The collection in `folder/out` of an export of these in `folder/export`; `more` are its photos and taxa."""
    return curated(export(folder / "export", observations, *more), folder / "out", **settings)


def curated(place: Path, out: Path, **settings: Any) -> Curated:
    return curate(InatSettings.read(export=place, **settings), out, silent)


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Kilometres between two (latitude, longitude) in degrees, by the haversine formula."""
    (up, along), (up2, along2) = (tuple(math.radians(value) for value in place) for place in (one, other))
    half = math.sin((up2 - up) / 2) ** 2 + math.cos(up) * math.cos(up2) * math.sin((along2 - along) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(min(1.0, half)))


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
