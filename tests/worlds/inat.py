"""Small exports written by hand."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eyespot import sample
from eyespot.curate.inat.curating import Curated, curate
from eyespot.curate.inat.sampling import RADIUS
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
