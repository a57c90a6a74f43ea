"""Vectors as plain as they come: `vectors.npy` (rows, dim), and `items.parquet` with the facts, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write vectors.npy and items.parquet."
OPTIONS = ("float16",)


class NpyLayout:
    """`id`, `paths` (whole), then every fact."""

    vectors = "vectors.npy"
    table = "items.parquet"
    part_rows = 1 << 62

    def columns(self, facts: pa.Table) -> pa.Table:
        """The gallery's own columns."""
        return facts


def write(rows: ExportRows, folder: Path) -> int:
    """Both files; `eyespot import npy` reads them in place."""
    from eyespot.formats.exports._vectors import write_parts

    return write_parts(rows, folder, NpyLayout())
