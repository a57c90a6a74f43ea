"""A Camtrap DP package: observations of a camera trap with their media and deployments."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.inat.source import RANKS, ObservationSource, TableFile, file_and_url, names_as_taxa, sheet
from eyespot.curate.inat.tables import quoted, real, select
from eyespot.formats.imports.camtrap_dp import PACKAGE, media_rights
from eyespot.storage.json_files import json_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

_TABLES = ("deployments", "media", "observations")


def source(place: Path) -> ObservationSource:
    """The package in a folder; `UsageError` for a table or column that is missing."""
    package, files = place / PACKAGE, {}
    for name in _TABLES:
        path = next((path for path in (place / f"{name}.csv", place / f"{name}.csv.gz") if path.is_file()), None)
        if path is None:
            raise UsageError(f"{place} has no {name}.csv; a Camtrap DP has {', '.join(_TABLES)}")
        files[name] = path
    fields = json_of(package)
    if not isinstance(fields, dict):
        refuse(package, "", "is not a package; expected an object with resources, licenses and contributors")
    seen, media, traps = (sheet(files[name]) for name in ("observations", "media", "deployments"))
    taxon = seen.require("scientificName")
    return ObservationSource(
        "camtrap-dp",
        {"package": package, **files},
        _observations(seen, traps, taxon),
        _photos(seen, media, media_rights(package, fields)),
        names_as_taxa(seen.sql, taxon, "NULL", {rank: seen.first(rank) for rank in RANKS}),
        citation=str(fields.get("bibliographicCitation") or fields.get("title") or ""),
    )


def _observations(seen: TableFile, traps: TableFile, taxon: str) -> str:
    """A row for each observation; its position and its camera, as its observer, come from the deployment."""
    where = {
        "deployment": traps.require("deploymentID"),
        "latitude": real(traps.require("latitude")),
        "longitude": real(traps.require("longitude")),
        "accuracy": real(traps.first("coordinateUncertainty")),
        "trap_began": traps.first("deploymentStart", "start"),
    }
    what = {
        "id": seen.require("observationID"),
        "deployment": seen.require("deploymentID"),
        "taxon": taxon,
        "began": seen.first("eventStart", "timestamp"),
        "kind": f"lower(COALESCE({seen.first('observationType')}, 'animal'))",
    }
    date = "COALESCE(began, trap_began)"
    columns = {
        "id": "id",
        "observer": "deployment",
        **{name: name for name in ("latitude", "longitude", "accuracy", "taxon")},
        "grade": "NULL::VARCHAR",
        "day": f"local_day({date}, longitude)",
        "fault": f"CASE WHEN kind <> 'animal' THEN 'no animal: ' || kind ELSE date_fault({date}, longitude) END",
    }
    return select(columns, f"{select(what, seen.sql)} LEFT JOIN {select(where, traps.sql)} USING (deployment)")


def _photos(seen: TableFile, media: TableFile, rights: tuple[str, str]) -> str:
    """The pictures of an observation: the one it names, or those of its camera during its event, earliest first."""
    licence, holder = (f"NULLIF({quoted(text)}, '')" for text in rights)
    columns = {
        "observation": "observation",
        "photo": "photo",
        "position": "CAST(row_number() OVER (PARTITION BY observation ORDER BY moment, photo) - 1 AS INTEGER)",
        "licence": licence,
        "observer": "NULL::VARCHAR",
        "holder": holder,
        **file_and_url("place", "name"),
        "width": "NULL::INTEGER",
        "height": "NULL::INTEGER",
        "fault": "CASE WHEN NOT public THEN 'a file that is not public' END",
    }
    return select(columns, _pairs(seen, media))


def _pairs(seen: TableFile, media: TableFile) -> str:
    """Observations beside their pictures."""
    pictures = {
        "photo": media.require("mediaID"),
        "camera": media.require("deploymentID"),
        "place": media.require("filePath"),
        "name": media.first("fileName"),
        "moment": f"utc_of({media.require('timestamp')})",
        "public": f"lower(COALESCE({media.first('filePublic')}, 'true')) IN ('true', 't', '1')",
    }
    what = {
        "observation": seen.require("observationID"),
        "deployment": seen.require("deploymentID"),
        "medium": seen.first("mediaID"),
        "began": f"utc_of({seen.first('eventStart', 'timestamp')})",
        "ended": f"utc_of({seen.first('eventEnd', 'eventStart', 'timestamp')})",
    }
    image = f"{media.sql} WHERE COALESCE({media.first('fileMediatype')}, 'image/jpeg') LIKE 'image/%'"
    both = f"{select(what, seen.sql)} o JOIN {select(pictures, image)} m"
    during = "o.medium IS NULL AND m.camera = o.deployment AND m.moment BETWEEN o.began AND o.ended"
    return f"(SELECT * FROM {both} ON m.photo = o.medium UNION ALL BY NAME SELECT * FROM {both} ON {during})"
