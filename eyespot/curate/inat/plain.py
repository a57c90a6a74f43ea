"""A table of your own observations: csv, tsv or parquet with the columns of Darwin Core, GBIF or iNaturalist."""

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
    table = sheet(path)
    if table.has(*FILES, *MEDIA) is None:
        raise UsageError(f"{path} has no column that names the photos ({', '.join((*FILES[:2], *MEDIA[:2]))}); add one")
    taxon = table.require(*TAXON)
    ranks = {rank: table.first(rank) for rank in RANKS}
    taxa = names_as_taxa(table.sql, taxon, table.first("taxonRank"), ranks)
    if table.has(*DATE) is None and table.has("year") is not None:
        month, day = (f"lpad({table.require(part)}, 2, '0')" for part in ("month", "day"))
        date = f"{table.require('year')} || '-' || {month} || '-' || {day}"
    else:
        date = table.require(*DATE)
    columns = {
        "id": table.require(*ID),
        "observer": table.first(*OBSERVER),
        "latitude": real(table.require(*LATITUDE)),
        "longitude": real(table.require(*LONGITUDE)),
        "accuracy": real(table.first(*ACCURACY)),
        "taxon": taxon,
        "grade": table.first("quality_grade", "qualityGrade"),
    }
    days = {"day": "local_day(date, longitude)", "fault": "date_fault(date, longitude)"}
    observations = select({name: name for name in columns} | days, select(columns | {"date": date}, table.sql))
    return ObservationSource("table", {"observations": path}, observations, _photos(table), taxa)


def _photos(table: TableFile) -> str:
    """A row for each file that a row names; a column may name several, separated by bars, the primary one first."""
    rows = {
        "observation": table.require(*ID),
        "licence": table.first(*LICENCE),
        "holder": table.first(*HOLDER),
        "parts": f"string_split(COALESCE({table.first(*FILES)}, {table.first(*MEDIA)}), '|')",
    }
    files = {
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
    return select(columns, f"{select(files, select(rows, table.sql))} WHERE one <> ''")
