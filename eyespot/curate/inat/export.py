"""iNaturalist's open-data export: four gzipped tables, read by the names of their columns."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.inat.source import RANKS, ObservationSource, sheet
from eyespot.curate.inat.tables import real, select, whole
from eyespot.types import UsageError

TABLES = ("observations", "photos", "taxa", "observers")
SITE = "https://inaturalist-open-data.s3.amazonaws.com/photos"
SIZE = "medium"  # 500 pixels on the longer side
_ENDINGS = (".csv.gz", ".tsv.gz", ".csv", ".tsv")
_PLAIN = "'^[A-Za-z0-9]+$'"


def is_one(place: Path) -> bool:
    """Whether a folder holds an export."""
    return _file(place, "observations") is not None and _file(place, "photos") is not None


def source(place: Path) -> ObservationSource:
    """The export in a folder; `UsageError` names the table or column that is missing."""
    files = {name: _file(place, name) for name in TABLES}
    missing = [name for name, path in files.items() if path is None]
    if missing:
        raise UsageError(f"{place} has no {missing[0]}.csv.gz; fetch all four tables of the export")
    found = {name: path for name, path in files.items() if path is not None}
    return ObservationSource(
        "inaturalist-open-data",
        found,
        _observations(found["observations"]),
        _photos(found["photos"]),
        _taxa(found["taxa"]),
        _observers(found["observers"]),
        years=(2021, 2023),
        grades=("research",),
        licence_version="4.0",
        unique_names=True,
        citation="iNaturalist Licensed Observation Images, https://registry.opendata.aws/inaturalist-open-data",
    )


def _file(place: Path, name: str) -> Path | None:
    return next((place / f"{name}{end}" for end in _ENDINGS if (place / f"{name}{end}").is_file()), None)


def _observations(path: Path) -> str:
    told = sheet(path)
    day = told.require("observed_on")
    columns = {
        "id": told.require("observation_uuid"),
        "observer": told.require("observer_id"),
        "latitude": real(told.require("latitude")),
        "longitude": real(told.require("longitude")),
        "accuracy": real(told.first("positional_accuracy")),
        "taxon": told.require("taxon_id"),
        "grade": told.require("quality_grade"),
        "day": f"local_day({day}, 0)",
        "fault": f"date_fault({day}, 0)",
    }
    return select(columns, told.sql)


def _photos(path: Path) -> str:
    told = sheet(path)
    photo, extension = told.require("photo_id"), f"lower({told.require('extension')})"
    # both become part of a path
    sound = f"COALESCE(regexp_matches({photo}, {_PLAIN}) AND regexp_matches({extension}, {_PLAIN}), false)"
    columns = {
        "observation": told.require("observation_uuid"),
        "photo": told.require("photo_uuid"),
        "position": whole(told.first("position")),
        "licence": told.require("license"),
        "observer": told.require("observer_id"),
        "holder": "NULL::VARCHAR",
        "file": f"{photo} || '.' || {extension}",
        "url": f"'{SITE}/' || {photo} || '/{SIZE}.' || {extension}",
        "width": whole(told.first("width")),
        "height": whole(told.first("height")),
        "fault": f"CASE WHEN NOT {sound} THEN 'a photo whose name is none' END",
    }
    return select(columns, told.sql)


def _taxa(path: Path) -> str:
    told = sheet(path)
    columns = {
        "taxon": told.require("taxon_id"),
        "name": told.require("name"),
        "rank": f"lower({told.require('rank')})",
        "rank_level": real(told.require("rank_level")),
        "active": f"lower({told.require('active')}) IN ('true', 't', '1')",
        "ancestry": f"COALESCE({told.require('ancestry')}, '')",
    }
    return select(columns | dict.fromkeys(RANKS, "NULL::VARCHAR"), told.sql)


def _observers(path: Path) -> str:
    told = sheet(path)
    name = f"COALESCE({told.first('name')}, {told.require('login')})"
    return select({"observer": told.require("observer_id"), "name": name}, told.sql)
