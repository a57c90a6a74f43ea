"""Parquet rankings and judgements: columns query, image and score or grade, with how they were made in the metadata.

Columns of other tools are known by their usual names. Rows may stand in any order: descending score, equal scores in
the order of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import opened_parquet
from eyespot.storage.text_files import data_of, refuse
from eyespot.types import IdColumn, Qrels, Run, UsageError

QUERY = ("query", "query_id", "query-id", "qid", "q_id")
IMAGE = ("image", "image_id", "corpus-id", "corpus_id", "docno", "doc_id", "docid", "pid")
SCORE = ("score", "similarity", "sim")
GRADE = ("grade", "relevant", "relevance", "rel", "label", "score")
METADATA = b"eyespot"


def read_run(path: Path) -> Run:
    """A run with its header and notes; `UsageError` for columns that are missing, empty ids and endless scores."""
    query, image, score, metadata = _columns(path, SCORE)
    try:
        run = Run.from_columns(query, image, score)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    run.header = {"source": str(path), **metadata.get("header", {})}
    run.notes = list(metadata.get("notes", []))
    return run


def read_qrels(path: Path) -> Qrels:
    """Judgements with their header; `UsageError` for columns that are missing, empty ids and broken grades."""
    query, image, grade, metadata = _columns(path, GRADE)
    try:
        qrels = Qrels.from_columns(query, image, grade)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    qrels.header = {"source": str(path), **metadata.get("header", {})}
    return qrels


def write_run(run: Run, path: Path) -> None:
    """Columns query, image, rank and score; header, notes and queries without hits go into the metadata."""
    metadata = {"header": run.header, "notes": run.notes}
    _write(path, run, {"rank": run.rank, "score": run.score}, metadata)


def write_qrels(qrels: Qrels, path: Path, more: Mapping[str, NDArray[Any]] | None = None) -> None:
    """Columns query, image and grade, and `more`, each (judged,); the metadata as of a run."""
    _write(path, qrels, {"grade": qrels.grade, **(more or {})}, {"header": qrels.header})


def _write(path: Path, rows: Run | Qrels, values: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    queries = np.repeat(np.arange(len(rows.queries), dtype=np.int32), np.diff(rows.offsets))  # (rows,)
    images = rows.images.tolist()
    columns = {
        "query": pa.DictionaryArray.from_arrays(queries, pa.array(rows.queries, pa.string())),
        "image": pa.DictionaryArray.from_arrays(rows.codes, pa.array(images, pa.string())),
    }
    note = json.dumps({"format": 1, "queries": rows.queries, **metadata}, ensure_ascii=False, default=str)
    table = pa.table({**columns, **values}).replace_schema_metadata({METADATA: note.encode()})
    write_whole(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _columns(path: Path, values: tuple[str, ...]) -> tuple[IdColumn, IdColumn, NDArray[np.float64], dict[str, Any]]:
    import pyarrow as pa

    with opened_parquet(path) as file:
        schema = file.schema_arrow
        names = []
        for wanted in (QUERY, IMAGE, values):
            column_name = next((name for name in wanted if name in schema.names), None)
            if column_name is None:
                refuse(path, "", f"has no column {wanted[0]}; there are: {', '.join(schema.names[:12]) or 'none'}")
            names.append(column_name)
        try:
            table = file.read(columns=names)
        except (pa.ArrowException, OSError) as error:
            refuse(path, "", f"cannot be read to its end ({error})")
        metadata = _run_metadata(schema.metadata or {})
    empty = next((name for name in names if table.column(name).null_count), None)
    if empty is not None:
        row = table.column(empty).is_null().to_pylist().index(True) + 1
        refuse(path, f"row {row}", f"has no {empty}")
    query, image = (_coded(path, table.column(name), name) for name in names[:2])
    column = table.column(names[2])
    name = names[2]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        refuse(path, "", f"has {column.type} in the column {name}; expected numbers")
    value: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()  # (rows,)
    return _with_rowless(query, metadata.get("queries", [])), image, value, metadata


def _coded(path: Path, column: Any, name: str) -> IdColumn:
    import pyarrow as pa

    values = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_integer(values)):
        refuse(path, "", f"has {values} in the column {name}; expected text or whole numbers")
    # A cast first: of a dictionary only what its rows use, in the order of their first use.
    coded = coded_column(column.cast(values).cast(pa.string()).dictionary_encode())
    if "" in coded.ids.tolist():
        row = int(np.flatnonzero(coded.codes == coded.ids.tolist().index(""))[0]) + 1
        refuse(path, f"row {row}", f"has an empty {name}")
    return coded


def coded_column(column: Any) -> IdColumn:
    """A dictionary-encoded arrow column as `Coded`."""
    whole = column.unify_dictionaries().combine_chunks()
    return IdColumn(whole.dictionary.to_numpy(zero_copy_only=False).astype(object), whole.indices.to_numpy())


def columns_of(path: Path) -> set[str]:
    """The names in the first line of a csv or tsv, or in the first object of JSON lines."""
    head = data_of(path)[:4096].decode("utf-8-sig", "replace").partition("\n")[0]
    return {name.strip() for name in re.split(r'[\t,":{}]', head)}


def _run_metadata(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    try:
        note = json.loads(metadata.get(METADATA, b"{}"))
    except (ValueError, RecursionError):
        return {}
    kinds = {"header": dict, "notes": list, "queries": list}
    return {
        name: note[name] for name, kind in kinds.items() if isinstance(note, dict) and isinstance(note.get(name), kind)
    }


def _with_rowless(query: IdColumn, queries: list[Any]) -> IdColumn:
    """The queries in the order in which they were written, those without rows included."""
    if set(query.ids.tolist()) - set(queries) or not all(isinstance(name, str) for name in queries):
        return query
    at = {name: place for place, name in enumerate(queries)}
    places = np.array([at[name] for name in query.ids.tolist()], dtype=np.int64)  # (distinct,)
    return IdColumn(np.array([*at, None], dtype=object)[:-1], places[query.codes] if len(places) else query.codes)
