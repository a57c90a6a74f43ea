"""A table of one's own observations: csv, tsv or parquet with the columns of Darwin Core, GBIF or iNaturalist."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.inat.source import RANKS, ObservationSource, TableFile, file_and_url, names_as_taxa, sheet
from eyespot.curate.inat.tables import real, select
from eyespot.types import UsageError

ID = ("occurrenceID", "gbifID", "observation_uuid", "observation_id", "catalogNumber", "uuid", "id")
OBSERVER = ("recordedByID", "recordedBy", "observer_id", "user_login", "user_id", "observer")
LATITUDE, LONGITUDE = ("decimalLatitude", "latitude"), ("decimalLongitude", "longitude")
ACCURACY = ("coordinateUncertaintyInMeters", "positional_accuracy", "location_uncertainty")
DATE = ("eventDate", "observed_on", "date", "taken")
TAXON = ("species", "scientificName", "scientific_name", "taxon_name", "latin_name")
FILES = ("file_name", "filename", "file", "path", "filepath", "image", "image_path")
MEDIA = ("accessURI", "associatedMedia", "image_url", "identifier")
LICENCE, HOLDER = ("license", "licence", "dcterms:license"), ("rightsHolder", "rights_holder", "recordedBy")


def source(path: Path) -> ObservationSource:
    """The table at a path; `UsageError` names the column that is missing."""
    told = sheet(path)
    if told.has(*FILES, *MEDIA) is None:
        raise UsageError(f"{path} has no column that names the photos ({', '.join((*FILES[:2], *MEDIA[:2]))}); add one")
    taxon = told.require(*TAXON)
    ranks = {rank: told.first(rank) for rank in RANKS}
    taxa = names_as_taxa(told.sql, taxon, told.first("taxonRank"), ranks)
    columns = {
        "id": told.require(*ID),
        "observer": told.first(*OBSERVER),
        "latitude": real(told.require(*LATITUDE)),
        "longitude": real(told.require(*LONGITUDE)),
        "accuracy": real(told.first(*ACCURACY)),
        "taxon": taxon,
        "grade": told.first("quality_grade", "qualityGrade"),
        "told": _date(told),
    }
    days = {"day": "local_day(told, longitude)", "fault": "date_fault(told, longitude)"}
    observations = select({name: name for name in columns if name != "told"} | days, select(columns, told.sql))
    return ObservationSource("table", {"observations": path}, observations, _photos(told), taxa)


def _date(told: TableFile) -> str:
    """The date as text, or put together from year, month and day."""
    if told.has(*DATE) is not None or told.has("year") is None:
        return told.require(*DATE)
    month, day = (f"lpad({told.require(part)}, 2, '0')" for part in ("month", "day"))
    return f"{told.require('year')} || '-' || {month} || '-' || {day}"


def _photos(told: TableFile) -> str:
    """A row for each file that a row names; several stand in one column with bars between, the first is the primary."""
    rows = {
        "observation": told.require(*ID),
        "licence": told.first(*LICENCE),
        "holder": told.first(*HOLDER),
        "parts": f"string_split(COALESCE({told.first(*FILES)}, {told.first(*MEDIA)}), '|')",
    }
    one = {
        **{name: name for name in ("observation", "licence", "holder")},
        "one": "trim(unnest(parts))",
        "position": "generate_subscripts(parts, 1) - 1",
    }
    columns = {
        "observation": "observation",
        "photo": "one",
        "position": "position",
        "licence": "licence",
        "observer": "NULL::VARCHAR",
        "holder": "holder",
        **file_and_url("one"),
        "width": "NULL::INTEGER",
        "height": "NULL::INTEGER",
        "fault": "NULL::VARCHAR",
    }
    return select(columns, f"{select(one, select(rows, told.sql))} WHERE one <> ''")
