"""Hits as a Camtrap DP 1.0 archive (https://camtrap-dp.tdwg.org): deployments, media and observations in a zip.

A deployment here is a place; photos know no more of theirs. Photos without a time or a position cannot stand in such an
archive and are left out, which its description says. EXIF times have no zone: they are written as UTC and every
deployment is marked with `timestampIssues`, as the standard has it for an unknown zone.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from mimetypes import guess_type
from typing import Any

from eyespot.types import NothingFound, UsageError
from eyespot.web.downloads.tables import as_csv
from eyespot.web.found.results import RankedResult

SCHEMAS = "https://raw.githubusercontent.com/tdwg/camtrap-dp/1.0/"
DEPLOYMENTS = """deploymentID locationID locationName latitude longitude coordinateUncertainty deploymentStart
    deploymentEnd setupBy cameraID cameraModel cameraDelay cameraHeight cameraDepth cameraTilt cameraHeading
    detectionDistance timestampIssues baitUse featureType habitat deploymentGroups deploymentTags
    deploymentComments"""
MEDIA = """mediaID deploymentID captureMethod timestamp filePath filePublic fileName fileMediatype exifData favorite
    mediaComments"""
OBSERVATIONS = """observationID deploymentID mediaID eventID eventStart eventEnd observationLevel observationType
    cameraSetupType scientificName count lifeStage sex behavior individualID individualPositionRadius
    individualPositionAngle individualSpeed bboxX bboxY bboxWidth bboxHeight classificationMethod classifiedBy
    classificationTimestamp classificationProbability observationTags observationComments"""
SPECIES = ("scientific_name", "scientificname", "species", "taxon", "taxon_name")


def archive(frozen: RankedResult, items: Sequence[Mapping[str, Any]]) -> bytes:
    """The zip. Raises `NothingFound` if no hit has both a time and a position, `UsageError` if they were left out."""
    if items and "latitude" not in items[0]:
        raise UsageError("a Camtrap DP archive holds positions; ask for it with all columns, or choose CSV")
    placed = [one for one in items if one.get("taken") and None not in (one["latitude"], one["longitude"])]
    if not placed:
        raise NothingFound("no hit has both a time and a position, which Camtrap DP needs; choose CSV or JSON")
    tables = {
        "deployments": as_csv(DEPLOYMENTS.split(), _deployments(placed)),
        "media": as_csv(MEDIA.split(), [_medium(one) for one in placed]),
        "observations": as_csv(OBSERVATIONS.split(), [_observation(frozen, one) for one in placed]),
    }
    about = json.dumps(_about(frozen, placed, len(items)), ensure_ascii=False, indent=1)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("datapackage.json", about)
        for name, table in tables.items():
            archive.writestr(f"{name}.csv", table)
    return packed.getvalue()


def _place(item: Mapping[str, Any]) -> str:
    """A place as a deployment's id: to a thousandth of a degree, about a hundred metres."""
    return f"at {item['latitude']:.3f} {item['longitude']:.3f}"


def _time(item: Mapping[str, Any]) -> str:
    return f"{str(item['taken'])[:19]}Z"


def _deployments(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_place: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        by_place.setdefault(_place(item), []).append(item)
    return [
        {
            "deploymentID": place,
            "latitude": its[0]["latitude"],
            "longitude": its[0]["longitude"],
            "deploymentStart": min(map(_time, its)),
            "deploymentEnd": max(map(_time, its)),
            "timestampIssues": "true",
        }
        for place, its in by_place.items()
    ]


def _medium(item: Mapping[str, Any]) -> dict[str, Any]:
    path = str(item["path"] or "")
    return {
        "mediaID": item["id"],
        "deploymentID": _place(item),
        "timestamp": _time(item),
        "filePath": path if re.fullmatch(r"(?!.*\.\.)[^./~].*", path) else item["id"],
        "filePublic": "false",
        "fileName": path.rpartition("/")[2],
        "fileMediatype": guess_type(path)[0] or "image/jpeg",
    }


def _observation(frozen: RankedResult, item: Mapping[str, Any]) -> dict[str, Any]:
    species = next((str(item[name]) for name in item if name.lower() in SPECIES and item[name]), None)
    return {
        "observationID": f"{frozen.id[:8]}-{item['rank']}",
        "deploymentID": _place(item),
        "mediaID": item["id"],
        "eventStart": _time(item),
        "eventEnd": _time(item),
        "observationLevel": "media",
        "observationType": "animal" if species else "unclassified",
        "scientificName": species,
        "observationTags": f"verdict:{item['verdict'] or 'none'} | rank:{item['rank']} | score:{item['score']}",
        "observationComments": f"found by searching for: {frozen.heading}",
    }


def _about(frozen: RankedResult, items: Sequence[Mapping[str, Any]], asked: int) -> dict[str, Any]:
    times = [_time(item)[:10] for item in items]
    species = {one["scientificName"] for item in items if (one := _observation(frozen, item))["scientificName"]}
    lats, lons = [item["latitude"] for item in items], [item["longitude"] for item in items]
    south, north, west, east = min(lats), max(lats), min(lons), max(lons)
    # The box around all places, counter-clockwise, as GeoJSON has it
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    csv = {"profile": "tabular-data-resource", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8"}
    resources = [
        {"name": name, "path": f"{name}.csv", **csv, "schema": f"{SCHEMAS}{name}-table-schema.json"}
        for name in ("deployments", "media", "observations")
    ]
    return {
        "name": f"eyespot-{frozen.id[:8]}",
        "title": f"Hits of a search for: {frozen.heading}",
        "description": f"{len(items)} of {asked} hits; {asked - len(items)} without a time or a position are left out. "
        "Times are the cameras' local ones, written as UTC. The design of the project is a guess.",
        "profile": f"{SCHEMAS}camtrap-dp-profile.json",
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "contributors": [{"title": "eyespot", "role": "contributor"}],
        "project": {
            "title": "Hits of a search",
            "samplingDesign": "opportunistic",
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": ["media"],
        },
        "spatial": {"type": "Polygon", "coordinates": [corners]},
        "temporal": {"start": min(times), "end": max(times)},
        "taxonomic": [{"scientificName": name} for name in sorted(species)],
        "resources": resources,
    }
