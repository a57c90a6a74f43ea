"""iNaturalist's open-data export: four gzipped tables, read by the names of their columns."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.inat.source import RANKS, ObservationSource, TableFile, sheet
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
    files = {}
    for name in TABLES:
        path = _file(place, name)
        if path is None:
            raise UsageError(f"{place} has no {name}.csv.gz; fetch all four tables of the export")
        files[name] = path
    observations, photos, taxa, observers = (sheet(files[name]) for name in TABLES)
    name = f"COALESCE({observers.first('name')}, {observers.require('login')})"
    return ObservationSource(
        "inaturalist-open-data",
        files,
        _observations(observations),
        _photos(photos),
        _taxa(taxa),
        select({"observer": observers.require("observer_id"), "name": name}, observers.sql),
        years=(2021, 2023),
        grades=("research",),
        licence_version="4.0",
        unique_names=True,
        citation="iNaturalist Licensed Observation Images, https://registry.opendata.aws/inaturalist-open-data",
    )


def _file(place: Path, name: str) -> Path | None:
    return next((place / f"{name}{end}" for end in _ENDINGS if (place / f"{name}{end}").is_file()), None)


def _observations(table: TableFile) -> str:
    day = table.require("observed_on")
    columns = {
        "id": table.require("observation_uuid"),
        "observer": table.require("observer_id"),
        "latitude": real(table.require("latitude")),
        "longitude": real(table.require("longitude")),
        "accuracy": real(table.first("positional_accuracy")),
        "taxon": table.require("taxon_id"),
        "grade": table.require("quality_grade"),
        "day": f"local_day({day}, 0)",
        "fault": f"date_fault({day}, 0)",
    }
    return select(columns, table.sql)


def _photos(table: TableFile) -> str:
    photo, extension = table.require("photo_id"), f"lower({table.require('extension')})"
    # both become part of a path
    sound = f"COALESCE(regexp_matches({photo}, {_PLAIN}) AND regexp_matches({extension}, {_PLAIN}), false)"
    columns = {
        "observation": table.require("observation_uuid"),
        "photo": table.require("photo_uuid"),
        "position": whole(table.first("position")),
        "licence": table.require("license"),
        "observer": table.require("observer_id"),
        "holder": "NULL::VARCHAR",
        "file": f"{photo} || '.' || {extension}",
        "url": f"'{SITE}/' || {photo} || '/{SIZE}.' || {extension}",
        "width": whole(table.first("width")),
        "height": whole(table.first("height")),
        "fault": f"CASE WHEN NOT {sound} THEN 'a photo whose name is none' END",
    }
    return select(columns, table.sql)


def _taxa(table: TableFile) -> str:
    columns = {
        "taxon": table.require("taxon_id"),
        "name": table.require("name"),
        "rank": f"lower({table.require('rank')})",
        "rank_level": real(table.require("rank_level")),
        "active": f"lower({table.require('active')}) IN ('true', 't', '1')",
        "ancestry": f"COALESCE({table.require('ancestry')}, '')",
    }
    return select(columns | dict.fromkeys(RANKS, "NULL::VARCHAR"), table.sql)
