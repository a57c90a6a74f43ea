"""Parquet for `datasets`, DuckDB and pandas: `data/*.parquet` with facts and vectors, pictures inside if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write parquet with every fact and vector, and the pictures on request, for datasets, DuckDB and pandas."
OPTIONS = ("float16", "pictures")
AT_ONCE = 64  # pictures in memory
VECTOR, IMAGE = "vector", "image"


def write(rows: ExportRows, folder: Path) -> int:
    """`data/train.parquet` with `id`, `paths` (the picture itself instead, on request), every fact, and `vector`."""
    import pyarrow.parquet as pq

    from eyespot.formats.hub import write_card

    schema = vector_schema(rows)
    licences: set[str] = set()
    written = 0
    (folder / "data").mkdir()
    if rows.options.pictures:
        schema = shown_schema(schema)
    with pq.ParquetWriter(folder / "data" / "train.parquet", schema, compression="zstd") as writer:
        for batch in _with_pictures(rows, schema) if rows.options.pictures else vector_tables(rows, schema):
            writer.write_batch(batch)
            written += len(batch)
            if "licence" in schema.names:
                licences |= set(filter(None, batch["licence"].to_pylist()))
    text = f"Pictures with vectors of `{rows.view.space.encoder}`, written by `eyespot export parquet`."
    write_card(folder, {"default": {"train": "data/*.parquet"}}, text, licences)
    return written


def vector_schema(rows: ExportRows) -> pa.Schema:
    """Every column that goes out, then `vector`."""
    import pyarrow as pa

    facts = [field for field in rows.columns.schema if field.name != VECTOR]
    return pa.schema([*facts, pa.field(VECTOR, pa.list_(pa.from_numpy_dtype(rows.dtype), rows.view.space.dim))])


def shown_schema(plain: pa.Schema) -> pa.Schema:
    """The same with the picture in place of its paths, so that `datasets` knows it for one."""
    import pyarrow as pa

    from eyespot.formats.hub import SHOWN, features

    picture = pa.field(IMAGE, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    fields = [picture, *(field for field in plain if field.name not in (IMAGE, "paths"))]
    kinds = {IMAGE: SHOWN} | {field.name: _dtype(field.type) for field in fields[1:] if field.name != VECTOR}
    lists = {it.name: (_dtype(it.type.value_type), it.type.list_size) for it in fields if it.name == VECTOR}
    return pa.schema(fields, features(kinds, lists))


def _dtype(kind: Any) -> str:
    """A type as `datasets` calls it."""
    return {"double": "float64", "float": "float32", "halffloat": "float16"}.get(str(kind), str(kind))


def vector_tables(rows: ExportRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows in that schema, some thousand at a time."""
    import pyarrow as pa

    for chunk in rows.chunks():
        columns = {name: chunk.facts[name] for name in schema.names if name != VECTOR}
        table = pa.table(columns | {VECTOR: _vectors(chunk.vectors, schema)}, schema=schema)
        yield from table.combine_chunks().to_batches()


def _vectors(vectors: Any, schema: pa.Schema) -> Any:
    import numpy as np
    import pyarrow as pa

    kind = schema.field(VECTOR).type
    flat = np.ascontiguousarray(vectors, kind.value_type.to_pandas_dtype()).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), kind.list_size)


def _with_pictures(rows: ExportRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

    from eyespot.formats.exports._names import FileNames

    names = FileNames()
    held: list[dict[str, Any]] = []
    vectors: list[Any] = []

    def batch() -> pa.RecordBatch:
        columns = {name: pa.array([row[name] for row in held], schema.field(name).type) for name in schema.names[:-1]}
        return pa.record_batch(columns | {VECTOR: _vectors(np.stack(vectors), schema)}, schema=schema)

    for row, picture in rows.pictures():
        path = names.take(picture.name, picture.suffix)
        held.append({**row.facts, IMAGE: {"bytes": picture.data, "path": path}})
        vectors.append(row.vector)
        if len(held) == AT_ONCE:
            yield batch()
            held, vectors = [], []
    if held:
        yield batch()
