"""Vectors as plain as they come: `vectors.npy` (rows, dim), and `items.parquet` with the facts, row for row.

`space.toml` says what the vectors were made with, so that an import finds them to be of that very space.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write vectors.npy, items.parquet and space.toml."
OPTIONS = ("float16",)


def write(rows: ExportRows, folder: Path) -> int:
    """`id`, `paths` (whole) and every fact; `eyespot import npy` reads both files in place."""
    import pyarrow.parquet as pq

    from eyespot.storage import arrays
    from eyespot.storage.text_files import toml_text

    with (
        (folder / "vectors.npy").open("wb") as vectors,
        pq.ParquetWriter(folder / "items.parquet", rows.schema) as table,
    ):
        arrays.begin(vectors, (len(rows), rows.view.space.dim), rows.dtype)
        for chunk in rows.chunks():
            table.write_table(chunk.facts)
            arrays.append(vectors, chunk.vectors.astype(rows.dtype))
    (folder / "space.toml").write_text(toml_text(asdict(rows.view.space)), encoding="utf-8")
    return len(rows)
