"""Vectors as plain as they come: `vectors.npy` (rows, dim), and `items.parquet` with the facts, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write vectors.npy and items.parquet."
OPTIONS = ("float16",)


def write(rows: ExportRows, folder: Path) -> int:
    """`id`, `paths` (whole) and every fact; `eyespot import npy` reads both files in place."""
    import pyarrow.parquet as pq

    from eyespot.storage import arrays

    with (
        (folder / "vectors.npy").open("wb") as vectors,
        pq.ParquetWriter(folder / "items.parquet", rows.schema) as table,
    ):
        arrays.begin(vectors, (len(rows), rows.view.space.dim), rows.dtype)
        for chunk in rows.chunks():
            table.write_table(chunk.facts)
            arrays.append(vectors, chunk.vectors.astype(rows.dtype))
    return len(rows)
