"""Parquet for `datasets`, DuckDB and pandas: `data/*.parquet` with facts and vectors, pictures inside if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.formats.folders import SHOWN, FileNames, features, write_card

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write parquet with every fact and vector, and the pictures on request, for datasets, DuckDB and pandas."
OPTIONS = ("float16", "pictures")
_AT_ONCE = 64  # pictures in memory
VECTOR, IMAGE = "vector", "image"


def write(rows: ExportRows, folder: Path) -> int:
    """`data/train.parquet` with `id`, `paths` (the picture itself instead, on request), every fact, and `vector`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    facts = [field for field in rows.schema if field.name != VECTOR]
    vector = pa.field(VECTOR, pa.list_(pa.from_numpy_dtype(rows.dtype), rows.view.space.dim))
    schema = pa.schema([*facts, vector])
    licences: set[str] = set()
    written = 0
    (folder / "data").mkdir()
    if rows.options.pictures:  # in place of their paths, so that `datasets` knows them for pictures
        picture = pa.field(IMAGE, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        facts = [field for field in facts if field.name not in (IMAGE, "paths")]
        kinds = {IMAGE: SHOWN} | {field.name: _dtype(field.type) for field in facts}
        lists = {VECTOR: (_dtype(vector.type.value_type), vector.type.list_size)}
        schema = pa.schema([picture, *facts, vector], features(kinds, lists))
    with pq.ParquetWriter(folder / "data" / "train.parquet", schema, compression="zstd") as writer:
        for batch in picture_batches(rows, schema) if rows.options.pictures else _batches(rows, schema):
            writer.write_batch(batch)
            written += len(batch)
            if "licence" in schema.names:
                licences |= set(filter(None, batch["licence"].to_pylist()))
    text = f"Pictures with vectors of `{rows.view.space.encoder}`, written by `eyespot export parquet`."
    write_card(folder, {"default": {"train": "data/*.parquet"}}, text, licences)
    return written


def _dtype(kind: Any) -> str:
    """A type as `datasets` calls it."""
    return {"double": "float64", "float": "float32", "halffloat": "float16"}.get(str(kind), str(kind))


def _batches(rows: ExportRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

    kind: Any = schema.field(VECTOR).type
    for chunk in rows.chunks():
        flat = np.ascontiguousarray(chunk.vectors, rows.dtype).ravel()
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat), kind.list_size)
        columns = {name: chunk.facts[name] for name in schema.names if name != VECTOR}
        yield from pa.table(columns | {VECTOR: vectors}, schema=schema).combine_chunks().to_batches()


def picture_batches(rows: ExportRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The pictures that can be read with their facts, in a schema with the column `IMAGE`."""
    import pyarrow as pa

    names = FileNames()
    pictures = rows.pictures()
    while some := list(islice(pictures, _AT_ONCE)):
        held = [
            {
                **row.facts,
                IMAGE: {"bytes": picture.data, "path": names.take(picture.name, picture.suffix)},
                VECTOR: row.vector.astype(rows.dtype),
            }
            for row, picture in some
        ]
        yield pa.RecordBatch.from_pylist(held, schema)
