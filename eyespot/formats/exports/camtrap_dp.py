"""Camtrap DP 1.0.2 (https://camtrap-dp.tdwg.org): deployments, media and observations, and what describes them.

A deployment here is a place; photos know no more of theirs. Photos without a time or a position cannot stand in such a
package and are left out, which its description says. EXIF times have no zone: they are written as UTC and every
deployment is marked with `timestampIssues`, as the standard has it for an unknown zone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.formats.folders import FileNames
from eyespot.photos.provenance import DATE_SOURCE, ROUGH
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import csv_bytes
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write a Camtrap DP 1.0.2 package with the pictures; it holds positions, so it needs --all-columns."
OPTIONS: tuple[str, ...] = ()
VERSION = "1.0.2"
SCHEMAS = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}/"
TABLES = {
    "deployments": """deploymentID locationID locationName latitude longitude coordinateUncertainty deploymentStart
        deploymentEnd setupBy cameraID cameraModel cameraDelay cameraHeight cameraDepth cameraTilt cameraHeading
        detectionDistance timestampIssues baitUse featureType habitat deploymentGroups deploymentTags
        deploymentComments""",
    "media": """mediaID deploymentID captureMethod timestamp filePath filePublic fileName fileMediatype exifData
        favorite mediaComments""",
    "observations": """observationID deploymentID mediaID eventID eventStart eventEnd observationLevel observationType
        cameraSetupType scientificName count lifeStage sex behavior individualID individualPositionRadius
        individualPositionAngle individualSpeed bboxX bboxY bboxWidth bboxHeight classificationMethod classifiedBy
        classificationTimestamp classificationProbability observationTags observationComments""",
}
SPECIES = ("scientific_name", "scientificname", "species", "taxon", "taxon_name")
KINDS = {"animal": "animal", "person": "human", "human": "human", "vehicle": "vehicle", "blank": "blank"}
_CSV = {"profile": "tabular-data-resource", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8"}
_HELD = ("id", "taken", "latitude", "longitude", "boxes", "size", "mtime", "width", "height", "file_name")


@dataclass(frozen=True)
class TrapPhoto:
    """A photo with a time and a position: `file` is its path in the package."""

    facts: Mapping[str, Any]
    file: str

    @property
    def place(self) -> str:
        """Its deployment: the position to a thousandth of a degree, about a hundred metres."""
        return f"at {self.facts['latitude']:.3f} {self.facts['longitude']:.3f}"

    @property
    def time(self) -> str:
        """When it was taken, as UTC."""
        return f"{str(self.facts['taken']).replace(' ', 'T')[:19]}Z"

    @property
    def species(self) -> str | None:
        """Its scientific name, if a column has one."""
        facts = self.facts
        return next((str(facts[name]) for name in facts if name.lower() in SPECIES and facts[name]), None)


def write(rows: ExportRows, folder: Path) -> int:
    """`datapackage.json`, three tables, and the pictures in `media/`."""
    from eyespot.formats.exporting import ExportFailure, known_facts

    if not rows.options.all_columns:
        raise UsageError("a Camtrap DP package holds positions; export it with --all-columns")
    names, photos = FileNames(), list[TrapPhoto]()
    (folder / "media").mkdir()
    for row, picture in rows.pictures():
        facts = known_facts(row.facts)
        good_for = str(facts.get(DATE_SOURCE) or ROUGH[0])
        has_time = bool(facts.get("taken")) and not good_for.endswith(ROUGH)  # to the second
        if not has_time or None in (facts.get("latitude"), facts.get("longitude")):
            rows.failed.append(ExportFailure(row.id, row.places[0], "without a time or a position"))
            continue
        name = f"media/{names.take(picture.name, picture.suffix)}"
        (folder / name).write_bytes(picture.data)
        photos.append(TrapPhoto(facts, name))
    if not photos:
        raise NothingFound("no photo has both a time and a position, which Camtrap DP needs; choose another format")
    left_out = sum(one.reason.startswith("without a time") for one in rows.failed)
    summary = f"{len(photos)} photos; {left_out} without a time or a position are left out."
    seen = {
        "deployments": list(_deployments(photos)),
        "media": [_medium(one) for one in photos],
        "observations": [seen for one in photos for seen in _observations(one)],
    }
    files = {f"{name}.csv": csv_bytes(columns.split(), seen[name]) for name, columns in TABLES.items()}
    files["datapackage.json"] = json.dumps(_described(photos, summary), ensure_ascii=False, indent=1).encode()
    for file, data in files.items():
        write_whole(folder / file, lambda target, data=data: target.write(data))  # type: ignore[misc]
    return len(photos)


def _deployments(photos: Sequence[TrapPhoto]) -> Iterator[dict[str, Any]]:
    by_place: dict[str, list[TrapPhoto]] = {}
    for photo in photos:
        by_place.setdefault(photo.place, []).append(photo)
    for place, there in by_place.items():
        times = [one.time for one in there]
        yield {
            "deploymentID": place,
            "latitude": there[0].facts["latitude"],
            "longitude": there[0].facts["longitude"],
            "deploymentStart": min(times),
            "deploymentEnd": max(times),
            "timestampIssues": "true",
        }


def _medium(photo: TrapPhoto) -> dict[str, Any]:
    rights = {"licence": photo.facts.get("licence"), "by": photo.facts.get("author"), "from": photo.facts.get("url")}
    return {
        "mediaID": photo.facts["id"],
        "deploymentID": photo.place,
        "timestamp": photo.time,
        "filePath": photo.file,
        "filePublic": "false",
        "fileName": photo.file.rpartition("/")[2],
        "fileMediatype": guess_type(photo.file)[0] or "image/jpeg",
        "mediaComments": "; ".join(f"{name} {value}" for name, value in rights.items() if value),
    }


def _observations(photo: TrapPhoto) -> Iterator[dict[str, Any]]:
    """What is seen: one row for the photo, or one for each of its boxes."""
    from eyespot.formats.exporting import boxes_of

    known = (*_HELD, *SPECIES, "licence", "author", "url")
    others = (f"{name}:{value}" for name, value in photo.facts.items() if name.lower() not in known)
    shared = {
        "deploymentID": photo.place,
        "mediaID": photo.facts["id"],
        "eventStart": photo.time,
        "eventEnd": photo.time,
        "observationLevel": "media",
        "observationTags": " | ".join(pair.replace("|", "/") for pair in others),
    }
    boxes = boxes_of(photo.facts.get("boxes"))
    for number, (kind, confidence, shares) in enumerate(boxes, 1):
        x, y, width, height = (min(max(share, 0.0), 1.0) for share in shares)
        corner = {"bboxX": round(min(x, 1 - 1e-4), 4), "bboxY": round(min(y, 1 - 1e-4), 4)}
        box = corner | {"bboxWidth": max(width, 1e-4), "bboxHeight": max(height, 1e-4)}
        animal = KINDS.get(kind) == "animal"
        observation: dict[str, Any] = {"observationID": f"{photo.facts['id']}-{number}"}
        observation |= {"observationType": KINDS.get(kind, "unknown")}
        if confidence is not None:
            observation |= {"classificationMethod": "machine", "classificationProbability": round(confidence, 4)}
        yield {**shared, **observation, **box, "scientificName": photo.species if animal else None}
    if not boxes:
        kind = "animal" if photo.species else "unclassified"
        only = {"observationID": photo.facts["id"], "observationType": kind, "scientificName": photo.species}
        yield {**shared, **only}


def _described(photos: Sequence[TrapPhoto], description: str) -> dict[str, Any]:
    """`datapackage.json`: what is in a package, whose it is, and where and when it was."""
    times = [photo.time[:10] for photo in photos]
    species = sorted({photo.species for photo in photos if photo.species})
    licences, holders = (
        sorted({str(photo.facts[column]) for photo in photos if photo.facts.get(column)})
        for column in ("licence", "author")
    )
    lats, lons = ([photo.facts[name] for photo in photos] for name in ("latitude", "longitude"))
    south, north, west, east = min(lats), max(lats), min(lons), max(lons)
    return {
        "name": "eyespot-export",
        "title": "Photos of a gallery",
        "description": f"{description} Times are the cameras' local ones, written as UTC. The design of the project "
        "is a guess.",
        "profile": f"{SCHEMAS}camtrap-dp-profile.json",
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "contributors": [
            {"title": "eyespot", "role": "contributor"},
            *({"title": holder, "role": "rightsHolder"} for holder in holders),
        ],
        **({"licenses": [_licence(one) for one in licences]} if licences else {}),
        "project": {
            "title": "Photos of a gallery",
            "samplingDesign": "opportunistic",
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": ["media"],
        },
        "spatial": {
            "type": "Polygon",
            "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]],
        },
        "temporal": {"start": min(times), "end": max(times)},
        "taxonomic": [{"scientificName": one} for one in species],
        "resources": [
            {"name": table, "path": f"{table}.csv", **_CSV, "schema": f"{SCHEMAS}{table}-table-schema.json"}
            for table in TABLES
        ],
    }


def _licence(text: str) -> dict[str, str]:
    licence = {"title": text, "scope": "media"}
    if "://" in text:
        return licence | {"path": text}
    return licence | {"name": re.sub(r"[^-a-zA-Z0-9._]+", "-", text).strip("-") or "other"}
