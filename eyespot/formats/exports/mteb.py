"""MTEB's tables `corpus`, `queries` and `qrels` as parquet with the pictures inside, as its loader reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write judgements as MTEB's tables corpus, queries and qrels, with the pictures inside."
OPTIONS = ("judged",)
SPLIT = "test"
TABLES = ("corpus", "queries", "qrels")


def write(rows: ExportRows, folder: Path) -> int:
    """A folder for each table; judgements of pictures that are not in the corpus are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from eyespot.formats.exports.parquet import VECTOR, picture_batches, shown_schema
    from eyespot.formats.hub import write_card

    places = {name: f"{name}/{SPLIT}.parquet" for name in TABLES}
    for name in TABLES:
        (folder / name).mkdir()
    facts = [field for field in rows.columns.schema if field.name not in ("modality", VECTOR)]
    schema = shown_schema(pa.schema([*facts, pa.field("modality", pa.string())]))
    ids: list[str] = []
    licences: set[str] = set()
    with pq.ParquetWriter(folder / places["corpus"], schema, compression="zstd") as writer:
        for batch in picture_batches(rows, schema, modality="image"):
            writer.write_batch(batch)
            ids += map(str, batch["id"].to_pylist())
            licences |= set(filter(None, batch["licence"].to_pylist())) if "licence" in schema.names else set()
    judged = rows.judged(ids)
    queries = [
        {"id": query, "modality": "text", "text": judged.queries.get(query, {}).get("text") or query}
        for query in judged.qrels
    ]
    grades = [
        {"query-id": query, "corpus-id": image, "score": grade}
        for query in judged.qrels
        for image, grade in judged.qrels[query].items()
    ]
    of_queries = pa.schema([pa.field(name, pa.string()) for name in ("id", "modality", "text")])
    named: list[pa.Field[Any]] = [pa.field(name, pa.string()) for name in ("query-id", "corpus-id")]
    of_qrels = pa.schema([*named, pa.field("score", pa.int64())])
    pq.write_table(pa.Table.from_pylist(queries, of_queries), folder / places["queries"])
    pq.write_table(pa.Table.from_pylist(grades, of_qrels), folder / places["qrels"])
    summary = "Judged pictures, written by `eyespot export mteb`."
    write_card(folder, {name: {SPLIT: place} for name, place in places.items()}, summary, licences)
    return len(ids)
