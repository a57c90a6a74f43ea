"""A Milvus collection as files: `schema.json`, and `data/*.parquet` in the form that its bulk import reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exported import Chunk
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write a Milvus collection: a schema, parquet for its bulk import with vectors and bit codes, and a recipe."
OPTIONS: tuple[str, ...] = ()
PART_ROWS = 500_000
ID_BYTES = 512
_LOAD = """\
## Load

Make a collection `pictures` with the fields and indexes of `schema.json` and dynamic fields switched on, put `data/`
into Milvus's bucket, and call `pymilvus.bulk_writer.bulk_import` with its files. Facts are dynamic fields, which
filters know by their names. `row` is the picture's place in the export. Search `vector` for words; `signs` alone is for
pictures that look like a picture.
"""


def write(rows: ExportRows, folder: Path) -> int:
    """The columns `id`, `row`, `vector` (float32), `signs` (dim / 8 bytes) and `$meta` (the facts as JSON)."""
    from eyespot.formats.exports._engines import mean_of, write_recipe
    from eyespot.storage.atomic import write_whole

    mean = mean_of(rows)
    (folder / "data").mkdir()
    written = _write_data(rows, folder, mean)
    text = json.dumps(schema_of(rows.view.space.dim), indent=1)
    write_whole(folder / "schema.json", lambda file: file.write(text.encode()))
    write_recipe(rows, folder, ("milvus", "Milvus"), _LOAD, mean)
    return written


def schema_of(dim: int) -> dict[str, Any]:
    """The fields and indexes of the collection, by the names that `pymilvus` has for them."""
    bits = -(-dim // 8) * 8
    return {
        "enable_dynamic_field": True,
        "fields": [
            {"name": "id", "type": "VARCHAR", "is_primary": True, "max_length": ID_BYTES},
            {"name": "row", "type": "INT64"},
            {"name": "vector", "type": "FLOAT_VECTOR", "dim": dim},
            {"name": "signs", "type": "BINARY_VECTOR", "dim": bits},
        ],
        "indexes": [
            {"field_name": "vector", "index_type": "DISKANN", "metric_type": "IP"},
            {"field_name": "signs", "index_type": "BIN_IVF_FLAT", "metric_type": "HAMMING", "params": {"nlist": 4096}},
        ],
    }


def _write_data(rows: ExportRows, folder: Path, mean: Any) -> int:
    import pyarrow.parquet as pq

    written, writer = 0, None
    for chunk in rows.chunks():
        table = _table(chunk, written, mean)
        if writer is None or written // PART_ROWS != (written + len(table) - 1) // PART_ROWS:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(
                folder / "data" / f"part-{written // PART_ROWS:05d}-{written}.parquet", table.schema
            )
        writer.write_table(table)
        written += len(table)
    if writer is not None:
        writer.close()
    return written


def _table(chunk: Chunk, first: int, mean: Any) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    from eyespot.formats.exporting import known_facts
    from eyespot.formats.exports._engines import signs_of

    facts = [known_facts(row) for row in chunk.facts.to_pylist()]
    signs = signs_of(chunk.vectors, mean)
    columns = {
        "id": pa.array([fact.pop("id") for fact in facts], pa.string()),
        "row": pa.array(np.arange(first, first + len(facts)), pa.int64()),
        "vector": pa.array(list(chunk.vectors.astype(np.float32)), pa.list_(pa.float32())),
        "signs": pa.array(list(signs), pa.list_(pa.uint8())),
        "$meta": pa.array([json.dumps(fact) for fact in facts], pa.string()),
    }
    return pa.table(columns)
