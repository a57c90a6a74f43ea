"""Vectors as plain as they come: `vectors.npy` (rows, dim), and a table `items.parquet` or `items.csv`, row for row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyespot.formats.imports.items import Layout
from eyespot.formats.imports.registered import ImportSource, Part
from eyespot.photos.labels import FILE_COLUMNS
from eyespot.storage.text_files import toml_of
from eyespot.types import Space, UsageError

LAYOUT = Layout(keys=("id", "key", *FILE_COLUMNS, "url"), paths=("paths", *FILE_COLUMNS, "url"))
TABLES = (".parquet", ".csv")


def source(places: Sequence[Path]) -> ImportSource:
    """A folder with the two files, the two files themselves, or vectors alone; `UsageError` for anything else."""
    if len(places) == 1 and places[0].is_dir():
        folder = places[0]
        names = ("vectors.npy", *(f"items{suffix}" for suffix in TABLES))
        files = [path for name in names if (path := folder.absolute() / name).exists()]
    else:
        files = [place.absolute() for place in places]
    vectors = [file for file in files if file.suffix.lower() == ".npy"]
    tables = [file for file in files if file.suffix.lower() in TABLES]
    if len(vectors) != 1 or len(tables) > 1 or len(files) > 2:
        raise UsageError(
            f"{', '.join(map(str, places))} is not one array and its table; name a folder with vectors.npy and "
            "items.parquet (or items.csv), or the two files"
        )
    table = tables[0] if tables else None
    notes = [] if tables else [f"{vectors[0]} has no table beside it; rows are named by their number"]
    parts, space = [Part(vectors[0].stem, vectors[0], table)], vectors[0].with_name("space.toml")
    try:
        made_with = Space(**toml_of(space)) if space.is_file() else None
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{space} does not say what the vectors were made with ({error}); move it away") from None
    return ImportSource("npy", vectors[0].parent, parts, LAYOUT, notes, made_with)
