"""Queries with what is known of each, from a table of any benchmark or the folder of a test collection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyespot.runs.judged import Columns
from eyespot.storage.files import refuse, required, rows_of
from eyespot.types import UsageError

ID = ("query_id", "query-id", "id", "_id", "qid")
TEXT = ("query_text", "text", "query", "question")


def read_queries(place: Path) -> dict[str, Columns]:
    """Queries by id, with `text` where a column tells it and all other columns as they are.

    `place` is a csv, tsv, jsonl or parquet table with one of the columns of `ID`, or a folder of a layout that lists
    its queries. Raises `UsageError` for a query that stands twice and for one without an id.
    """
    return _of_folder(place) if place.is_dir() else _of_table(place)


def _of_folder(folder: Path) -> dict[str, Columns]:
    from eyespot.runs import read_judged

    found = read_judged(folder).queries
    if not found:
        raise UsageError(f"{folder} lists no queries; give the csv, jsonl or parquet file that does")
    return found


def _of_table(path: Path) -> dict[str, Columns]:
    found: dict[str, Columns] = {}
    for line, row in rows_of(path):
        query = required(path, line, row, *ID)
        if query in found:
            refuse(path, f"line {line}", f"has the query {query!r} a second time; keep one of the two")
        found[query] = _facts(row)
    return found


def _facts(row: Mapping[str, Any]) -> Columns:
    own = next(name for name in ID if name in row)
    text = next((name for name in TEXT if isinstance(row.get(name), str)), None)
    rest = {name: value for name, value in row.items() if name not in ("", own, text)}
    return rest if text is None else {"text": row[text], **rest}


def groups(queries: Mapping[str, Columns], column: str) -> dict[str, list[str]]:
    """The ids of the queries under each value of a column, values in the order of the alphabet.

    Values are compared without case and outer spaces, and spelled as the first of their spellings in the alphabet; a
    query without a value is under "". Raises `UsageError` if no query has the column.
    """
    if not any(column in facts for facts in queries.values()):
        there = sorted({name for facts in queries.values() for name in facts})
        raise UsageError(f"the queries have no column {column!r}; there are: {', '.join(there) or 'none'}")
    found: dict[str, list[tuple[str, str]]] = {}
    for query, facts in queries.items():
        value = facts.get(column)
        spelled = "" if value is None else str(value).strip()
        found.setdefault(spelled.casefold(), []).append((spelled, query))
    return {min(of_one)[0]: [query for _, query in of_one] for _, of_one in sorted(found.items())}
