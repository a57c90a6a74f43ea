"""The labels of a gallery's pictures, in a column or in files, as classes to train on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from eyespot.gallery.view import View
from eyespot.photos.labels import FILE_COLUMNS
from eyespot.search.captioned import IN_FOLDERS, TABLES, cells_of
from eyespot.search.matching import matched
from eyespot.storage.ids import required
from eyespot.storage.systems import with_slashes
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import NothingFound

LABEL = "label"


class RowLabels(NamedTuple):
    """The label of each row of the view, (rows,), None where there is none; `notes` are for the user."""

    labels: list[str | None]
    notes: list[str]


def labels_of(view: View, spec: str) -> RowLabels:
    """The labels of a column, of a table with a column `label`, or of each captions.parquet below a folder.

    A file is what ends like a table or has a slash. Raises `UsageError` for what is not there, `NothingFound` if no
    picture that is there has a label.
    """
    place = Path(spec).expanduser()
    if place.is_dir() and "/" in with_slashes(spec):
        found = _of_files(view, place, sorted(place.rglob(IN_FOLDERS)))
    elif "/" in with_slashes(spec) or place.suffix.lower() in TABLES:
        found = _of_files(view, place, [place])
    else:
        found = RowLabels(_of_column(view, spec), [])
    there = [one if live else None for one, live in zip(found.labels, view.live.tolist(), strict=True)]
    if not any(one is not None for one in there):
        raise NothingFound(f"no picture of {view.gallery.path} has a label in {spec}")
    return RowLabels(there, found.notes)


def _of_files(view: View, place: Path, files: list[Path]) -> RowLabels:
    """By id, or by file name as judged images are; a name that several pictures are called by is passed over."""
    names: dict[str, str] = {}
    by = "id"
    for path in files:
        for line, row in rows_of(path, ("id", *FILE_COLUMNS, LABEL)):
            by = next((name for name in ("id", *FILE_COLUMNS) if name in row), "id")
            if LABEL not in row:
                refuse(path, f"line {line}", f"has no column {LABEL}")
            if row[LABEL] is not None and str(row[LABEL]).strip():
                names[required(path, line, row, by)] = str(row[LABEL]).strip()
    matching = matched(view, list(names), "id" if by == "id" else None)
    labels: list[str | None] = [None] * len(view.live)
    unclear = set(matching.ambiguous)
    for name, row in zip(matching.names, matching.rows.tolist(), strict=True):
        if row >= 0 and name not in unclear:
            labels[row] = names[name]
    count = sum(one is not None for one in labels)
    return RowLabels(labels, [f"{count} of {len(names)} labels of {place} are of a picture of the gallery"])


def _of_column(view: View, column: str) -> list[str | None]:
    cells = cells_of(view, column)
    return [None if cell is None or not str(cell).strip() else str(cell).strip() for cell in cells]
