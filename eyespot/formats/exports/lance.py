"""A LanceDB table that any of its users can search: `pictures` with id, path, every fact, and the vector."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write a LanceDB database with one table, `pictures`: ids, every fact, and vectors."
OPTIONS = ("float16",)
TABLE = "pictures"


def write(rows: ExportRows, folder: Path) -> int:
    """The database in the folder itself: `lancedb.connect(OUT).open_table("pictures")`."""
    from eyespot.formats.exports.parquet import vector_schema, vector_tables
    from eyespot.rooms import needs

    os.environ.setdefault("LANCEDB_LOG", "error")  # else it writes on stderr that a new table did not exist before
    with needs("lance"):
        import lancedb
    schema = vector_schema(rows)
    table: Any = lancedb.connect(str(folder)).create_table(TABLE, vector_tables(rows, schema), schema=schema)
    return int(table.count_rows())
