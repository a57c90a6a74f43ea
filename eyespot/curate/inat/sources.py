"""Sources of observations: iNaturalist's open-data export, or a table of your own.

Both give the same four tables, as SQL over their files:

    observations  id, observer, latitude, longitude, accuracy (m), taxon, grade, day, fault
    photos        observation, photo, position, extension, licence, observer, holder, file, url, width, height, fault
    taxa          taxon, name, rank, rank_level, active, ancestry (ids from the root, `48460/1/2`), kingdom … genus
    observers     observer, name
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eyespot.curate.inat.tables import parquet, quote_name, quoted, real, select, whole
from eyespot.storage.tables import opened_parquet
from eyespot.types import UsageError

SPECIES = ("species", "subspecies", "variety", "form", "infraspecies")  # and what is below
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
ENDINGS = (".csv", ".tsv", ".txt", ".parquet")
MAX_LINE = 8 << 20
_UNIDENTIFIED = ("sp", "spp", "ssp", "subsp", "cf", "aff", "nr", "indet")  # after a genus: no epithets


@dataclass(frozen=True)
class ObservationSource:
    """Files, and the four tables in them as SQL; `years` and `grades` are the defaults of the filter."""

    kind: str
    files: Mapping[str, Path]
    observations: str
    photos: str
    taxa: str
    observers: str | None = None
    years: tuple[int, int] | None = None
    grades: tuple[str, ...] = ()
    licence_version: str = ""
    citation: str = ""
    version: int = 4
    unique_names: bool = False  # no two photos have one file name


@dataclass(frozen=True)
class TableFile:
    """A table on disk with its columns, as SQL that reads every value as text."""

    path: Path
    columns: tuple[str, ...]
    sql: str

    def first(self, *names: str) -> str:
        """The first of these columns that exists, as SQL, trimmed, with NULL for empty values; NULL if none exists."""
        name = self.has(*names)
        return "NULL" if name is None else f"NULLIF(trim({quote_name(name)}), '')"

    def has(self, *names: str) -> str | None:
        """The name of the first of these columns that exists, in any case."""
        lowered = {column.casefold(): column for column in reversed(self.columns)}
        return next((lowered[name.casefold()] for name in names if name.casefold() in lowered), None)

    def require(self, *names: str) -> str:
        """The same; `UsageError` if none exists."""
        if self.has(*names) is None:
            there = ", ".join(self.columns[:12]) or "none"
            raise UsageError(f"{self.path} has no column {names[0]}; there are: {there}")
        return self.first(*names)


def sheet(path: Path) -> TableFile:
    """A csv, tsv or parquet file, gzipped or not; `UsageError` for another, or one without a header."""
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(ENDINGS):
        raise UsageError(f"{path} is not a table that eyespot reads; give .csv, .tsv or .parquet, also gzipped (.gz)")
    if name.endswith(".parquet"):
        with opened_parquet(path) as file:
            columns = tuple(file.schema_arrow.names)
        casts = ", ".join(f"CAST({quote_name(column)} AS VARCHAR) AS {quote_name(column)}" for column in columns)
        return TableFile(path, columns, f"(SELECT {casts} FROM {parquet(path)})")
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            head = str(file.readline(MAX_LINE)).rstrip("\r\n")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (OSError, EOFError) as error:
        raise UsageError(f"{path} cannot be read ({error}); fetch it again") from None
    delimiter = max("\t,;", key=head.count)
    # a table with tabs is not quoted: names in it may hold single quotation marks
    quote = "" if delimiter == "\t" else '"'
    header = csv.reader([head], delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE)
    columns = tuple(next(header, list[str]()))
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"{path} has no header of distinct column names; write one on its first line")
    kinds = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in columns)
    options = f"delim={quoted(delimiter)}, quote={quoted(quote)}, escape={quoted(quote)}, columns={{{kinds}}}"
    reading = "header=true, auto_detect=false, nullstr='', ignore_errors=true, store_rejects=true"
    packed = "gzip" if path.name.lower().endswith(".gz") else "none"
    rest = f"compression='{packed}', max_line_size={MAX_LINE}, null_padding=false"
    return TableFile(path, columns, f"read_csv({quoted(path)}, {options}, {reading}, {rest})")


def names_as_taxa(table: str, taxon: str, rank: str, ranks: Mapping[str, str]) -> str:
    """The taxa of observations that only name them: a taxon is its name, a species the first two words of it.

    Hybrids (`Larus argentatus x fuscus`) and names that do not reach the species (`Larus sp`, `Larus cf fuscus`) are
    not species.
    """
    plain = f"regexp_extract({taxon}, '^(\\p{{Lu}}[\\p{{L}}-]+ [\\p{{Ll}}-]+)( |$)', 1)"
    none = f"{plain} = '' OR split_part({plain}, ' ', 2) IN ({', '.join(map(quoted, _UNIDENTIFIED))})"
    crossed = f"regexp_matches({taxon}, '×|(^|\\s)[xX](\\s|$)') OR lower(coalesce({rank}, '')) LIKE '%hybrid%'"
    above = f"lower(coalesce({rank}, 'species')) NOT IN ({', '.join(map(quoted, SPECIES))})"
    kind = f"CASE WHEN {crossed} THEN 'hybrid' WHEN {above} OR {none} THEN 'higher' ELSE 'species' END"
    names = {rank: f"min({ranks.get(rank, 'NULL')})" for rank in RANKS}
    columns = {
        "taxon": taxon,
        "name": plain,
        "rank": f"min({kind})",
        "rank_level": "CAST(10 AS DOUBLE)",
        "active": "true",
        "ancestry": "''",
    }
    return select(columns | names, f"{table} WHERE {taxon} IS NOT NULL GROUP BY ALL")


# The columns of photos in their order, with what they hold where a source does not say it
_PHOTO = {
    **{"observation": "observation", "photo": "NULL", "position": "NULL", "licence": "NULL"},
    **dict.fromkeys(("observer", "holder", "file", "url"), "NULL::VARCHAR"),
    **{"width": "NULL::INTEGER", "height": "NULL::INTEGER", "fault": "NULL::VARCHAR"},
}


ID = ("occurrenceID", "gbifID", "observation_uuid", "observation_id", "catalogNumber", "uuid", "id")
OBSERVER = ("recordedByID", "recordedBy", "observer_id", "user_login", "user_id", "observer")
LATITUDE, LONGITUDE = ("decimalLatitude", "latitude"), ("decimalLongitude", "longitude")
ACCURACY = ("coordinateUncertaintyInMeters", "positional_accuracy", "location_uncertainty")
DATE = ("eventDate", "observed_on", "date", "taken")
TAXON = ("species", "scientificName", "scientific_name", "taxon_name", "latin_name")
FILES = ("file_name", "filename", "file", "path", "filepath", "image", "image_path")
MEDIA = ("accessURI", "associatedMedia", "image_url", "identifier")
LICENCE, HOLDER = ("license", "licence", "dcterms:license"), ("rightsHolder", "rights_holder", "recordedBy")


def table_source(path: Path) -> ObservationSource:
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
    return ObservationSource("table", {"observations": path}, observations, _table_photos(table), taxa)


def _table_photos(table: TableFile) -> str:
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
    # A path is the file's name; of an address the last part is
    address, last = "regexp_matches(one, '^https?://')", "regexp_extract(split_part(one, '?', 1), '[^/]*$')"
    columns = {
        "photo": "one",
        **{name: name for name in ("position", "licence", "holder")},
        "file": f"CASE WHEN {address} THEN {last} ELSE one END",
        "url": f"CASE WHEN {address} THEN one END",
    }
    return select(_PHOTO | columns, f"{select(files, select(rows, table.sql))} WHERE one <> ''")


EXPORT_TABLES = ("observations", "photos", "taxa", "observers")
SITE = "https://inaturalist-open-data.s3.amazonaws.com/photos"
SIZE = "medium"  # 500 pixels on the longer side
_ENDINGS = (".csv.gz", ".tsv.gz", ".csv", ".tsv")
_PLAIN = "'^[A-Za-z0-9]+$'"


def export_source(place: Path) -> ObservationSource:
    """The export in a folder; `UsageError` names the table or column that is missing."""
    files = {}
    for name in EXPORT_TABLES:
        path = _export_file(place, name)
        if path is None:
            raise UsageError(f"{place} has no {name}.csv.gz; fetch all four tables of the export")
        files[name] = path
    observations, photos, taxa, observers = (sheet(files[name]) for name in EXPORT_TABLES)
    name = f"COALESCE({observers.first('name')}, {observers.require('login')})"
    return ObservationSource(
        "inaturalist-open-data",
        files,
        _export_observations(observations),
        _export_photos(photos),
        _export_taxa(taxa),
        select({"observer": observers.require("observer_id"), "name": name}, observers.sql),
        years=(2021, 2023),
        grades=("research",),
        licence_version="4.0",
        unique_names=True,
        citation="iNaturalist Licensed Observation Images, https://registry.opendata.aws/inaturalist-open-data",
    )


def _export_file(place: Path, name: str) -> Path | None:
    return next((place / f"{name}{end}" for end in _ENDINGS if (place / f"{name}{end}").is_file()), None)


def _export_observations(table: TableFile) -> str:
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


def _export_photos(table: TableFile) -> str:
    photo, extension = table.require("photo_id"), f"lower({table.require('extension')})"
    # both become part of a path
    sound = f"COALESCE(regexp_matches({photo}, {_PLAIN}) AND regexp_matches({extension}, {_PLAIN}), false)"
    columns = {
        "observation": table.require("observation_uuid"),
        "photo": table.require("photo_uuid"),
        "position": whole(table.first("position")),
        "licence": table.require("license"),
        "observer": table.require("observer_id"),
        "file": f"{photo} || '.' || {extension}",
        "url": f"'{SITE}/' || {photo} || '/{SIZE}.' || {extension}",
        "width": whole(table.first("width")),
        "height": whole(table.first("height")),
        "fault": f"CASE WHEN NOT {sound} THEN 'a photo whose name is none' END",
    }
    return select(_PHOTO | columns, table.sql)


def _export_taxa(table: TableFile) -> str:
    columns = {
        "taxon": table.require("taxon_id"),
        "name": table.require("name"),
        "rank": f"lower({table.require('rank')})",
        "rank_level": real(table.require("rank_level")),
        "active": f"lower({table.require('active')}) IN ('true', 't', '1')",
        "ancestry": f"COALESCE({table.require('ancestry')}, '')",
    }
    return select(columns | dict.fromkeys(RANKS, "NULL::VARCHAR"), table.sql)


def source_of(place: Path) -> ObservationSource:
    """The source at a path; `UsageError` if it is neither an export nor a table."""
    if not place.exists():
        raise UsageError(f"there is no {place}; name an export's folder or a table of observations")
    if place.is_file():
        return table_source(place)
    if all(_export_file(place, name) for name in ("observations", "photos")):
        return export_source(place)
    form = "export (observations, photos, taxa and observers as .csv.gz)"
    raise UsageError(f"{place} holds no {form}; name another folder, or a table of observations")
