"""Lists of names that a user gives: taxa whose positions are coarsened, photos that annotators flagged.

A misread list would publish what it is meant to hide, so a list without names is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, text_of

TAXA = ("name", "species", "scientific_name", "taxon_name", "latin_name", "taxon", "taxon_id")
PHOTOS = ("photo", "photo_uuid", "photo_id", "file_name")


def listed(path: Path, columns: Sequence[str]) -> set[str]:
    """The names of a list: one per line (.txt), or the values of these columns of a table, in any case.

    Raises `UsageError` for a table without any of the columns, and for an empty list.
    """
    lines = path.suffix.lower() in (".txt", "")
    if lines:
        values = text_of(path).splitlines()
    else:
        rows = list(rows_of(path))
        known = {_key(column) for column in columns}
        there = {name: None for _, row in rows for name in row}
        if there and not any(_key(name) in known for name in there):
            refuse(path, "", f"has no column {columns[0]} ({', '.join(columns[1:])}); there are: {', '.join(there)}")
        cells = (value for _, row in rows for name, value in row.items() if _key(name) in known)
        values = [str(value) for value in cells if value is not None]
    names = {name for value in values if (name := " ".join(value.split()))}
    if not names:
        refuse(path, "", f"lists nothing; write {columns[0]}s into it, or leave the list out")
    return names


def _key(column: str) -> str:
    """A column's name for comparison: `Scientific Name`, `scientificName` and `scientific_name` are equal."""
    return "".join(letter for letter in column.casefold() if letter.isalnum())
