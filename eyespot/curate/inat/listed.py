"""Lists of names that a user gives: taxa whose positions are coarsened, photos that annotators flagged.

A list that is misread would tell what it was written to hide, so one that names nothing is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyespot.storage.files import refuse, rows_of, text_of

TAXA = ("name", "species", "scientific_name", "taxon_name", "latin_name", "taxon", "taxon_id")
PHOTOS = ("photo", "photo_uuid", "photo_id", "file_name")


def listed(path: Path, columns: Sequence[str]) -> set[str]:
    """The names of a list: a line each (.txt), or what a table has in these columns, whatever the case of its header.

    Raises `UsageError` for a table with none of the columns, and for a list of nothing.
    """
    lines = path.suffix.lower() in (".txt", "")
    if lines:
        told = text_of(path).splitlines()
    else:
        rows = list(rows_of(path))
        known = {_key(column) for column in columns}
        there = {name: None for _, row in rows for name in row}
        if there and not any(_key(name) in known for name in there):
            refuse(path, "", f"has no column {columns[0]} ({', '.join(columns[1:])}); there are: {', '.join(there)}")
        cells = (value for _, row in rows for name, value in row.items() if _key(name) in known)
        told = [str(value) for value in cells if value is not None]
    found = {name for one in told if (name := " ".join(one.split()))}
    if not found:
        refuse(path, "", f"lists nothing; write {columns[0]}s into it, or leave the list out")
    return found


def _key(column: str) -> str:
    """A column's name as it is compared: `Scientific Name` is `scientificName` and `scientific_name`."""
    return "".join(letter for letter in column.casefold() if letter.isalnum())
