"""Sources of observations: iNaturalist's open-data export, a table of your own, or a Camtrap DP package.

All three give the same four tables, as SQL over their files:

    observations  id, observer, latitude, longitude, accuracy (m), taxon, grade, day, fault
    photos        observation, photo, position, extension, licence, observer, holder, file, url, width, height, fault
    taxa          taxon, name, rank, rank_level, active, ancestry (ids from the root, `48460/1/2`), kingdom … genus
    observers     observer, name
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.curate.inat.tables import parquet, quote_name, quoted, select
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
    version: int = 3
    unique_names: bool = False  # no two photos have one file name
    notes: Sequence[str] = field(default_factory=tuple)


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
    return _delimited(path)


def _delimited(path: Path) -> TableFile:
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
    columns = next(csv.reader([head], delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE), [])
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"{path} has no header of distinct column names; write one on its first line")
    kinds = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in columns)
    options = f"delim={quoted(delimiter)}, quote={quoted(quote)}, escape={quoted(quote)}, columns={{{kinds}}}"
    reading = "header=true, auto_detect=false, nullstr='', ignore_errors=true, store_rejects=true"
    packed = "gzip" if path.name.lower().endswith(".gz") else "none"
    rest = f"compression='{packed}', max_line_size={MAX_LINE}, null_padding=false"
    return TableFile(path, tuple(columns), f"read_csv({quoted(path)}, {options}, {reading}, {rest})")


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
    names = {rank: f"any_value({ranks.get(rank, 'NULL')})" for rank in RANKS}
    columns = {
        "taxon": taxon,
        "name": plain,
        "rank": f"any_value({kind})",
        "rank_level": "CAST(10 AS DOUBLE)",
        "active": "true",
        "ancestry": "''",
    }
    return select(columns | names, f"{table} WHERE {taxon} IS NOT NULL GROUP BY ALL")


def file_and_url(place: str, name: str = "NULL") -> dict[str, str]:
    """The columns `file` and `url` of a path or address.

    A path is the file's name; the file of an address has its `name`, or the last part of the address.
    """
    address = f"regexp_matches({place}, '^https?://')"
    last = f"regexp_extract(split_part({place}, '?', 1), '[^/]*$')"
    return {
        "file": f"CASE WHEN {address} THEN COALESCE({name}, {last}) ELSE {place} END",
        "url": f"CASE WHEN {address} THEN {place} END",
    }
