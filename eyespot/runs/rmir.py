"""RMIR sets: tables of queries, qrels and pool, as parquet or jsonl, in our own layout or in one that a file maps.

queries: id, image (the input picture), question, and what else is known (`kind`, `split`, `target_description`,
`reasoning`); qrels: query, image and grade (1 if there is none, -1 if it is unknown); pool: image. A `mapping.json` in
the folder names other files and columns:
{"queries": {"file": "test.jsonl", "columns": {"id": "qid", "question": "text"}}}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import id_of, json_of, refuse, required
from eyespot.types import Qrels, UsageError

UNKNOWN = -1
"""The grade of a photo of which nobody can say whether it answers; it is left out of that query's ranking."""
TABLES = {"queries": ("id", "image", "question"), "qrels": ("query", "image"), "pool": ("image",)}
ENDINGS = ("parquet", "jsonl", "jsonl.gz", "tsv", "csv")


def is_layout(folder: Path) -> bool:
    """Whether a folder holds an RMIR set: its mapping, or the three tables."""
    return (folder / "mapping.json").is_file() or all(_own(folder, table) for table in TABLES)


def is_home_made(folder: Path) -> bool:
    """Whether `eyespot build rmir` made it: beside its tables lies what was lost on the way."""
    return any((folder / f"losses.{ending}").is_file() for ending in ENDINGS)


def read(folder: Path) -> JudgedQueries:
    """Queries with `text` (the question), `image` and all other columns; pool images with theirs."""
    queries: dict[str, Columns] = {}
    for path, line, row in _rows(folder, "queries"):
        query = required(path, line, row, "id")
        if query in queries:
            refuse(path, f"line {line}", f"has the query {query!r} a second time; keep one of the two")
        if not isinstance(row.get("question"), str):
            refuse(path, f"line {line}", f"has no text as question; there are: {', '.join(row)}")
        queries[query] = {**row, "text": row["question"], "image": required(path, line, row, "image")}
    grades: dict[str, dict[str, int]] = {query: {} for query in queries}
    for path, line, row in _rows(folder, "qrels"):
        query, image = required(path, line, row, "query"), required(path, line, row, "image")
        if query not in grades or image in grades[query]:
            why = "is not among the queries" if query not in grades else f"judges {image!r} a second time"
            refuse(path, f"line {line}", f"the query {query!r} {why}")
        value = row.get("grade")
        text = "1" if value is None else id_of(value)
        if text is None or not text.lstrip("-").isdecimal():
            refuse(path, f"line {line}", f"has {value!r} as grade; expected a whole number")
        grades[query][image] = int(text)
    pool = {required(path, line, row, "image"): row for path, line, row in _rows(folder, "pool")}
    for image, facts in pool.items():
        facts.pop("image", image)
    return JudgedQueries(queries, Qrels(grades, {"source": str(folder)}), pool)


def _rows(folder: Path, table: str) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    path, renamed = _mapped(folder, table)
    names = {new: old for old, new in renamed.items()}
    for line, row in rows_of(path):
        yield path, line, {names.get(name, name): value for name, value in row.items()}


def place(folder: Path, table: str) -> Path:
    """Where a table of the set lies; `UsageError` if there is none."""
    return _mapped(folder, table)[0]


def _mapped(folder: Path, table: str) -> tuple[Path, Mapping[str, str]]:
    mapping = folder / "mapping.json"
    tables = json_of(mapping) if mapping.is_file() else {}
    entry = tables.get(table, {}) if isinstance(tables, dict) else None
    columns = entry.get("columns", {}) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(columns, dict) or not isinstance(entry.get("file", ""), str):
        refuse(mapping, table, 'is not {"file": NAME, "columns": {OURS: THEIRS}}')
    place = folder / entry["file"] if "file" in entry else _own(folder, table)
    if place is None or not place.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"there is no table {table} in {folder}; expected {table}.parquet or .jsonl, or a mapping.json"
        )
    return place, columns


def _own(folder: Path, table: str) -> Path | None:
    return next((p for ending in ENDINGS if (p := folder / f"{table}.{ending}").is_file()), None)
