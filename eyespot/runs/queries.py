"""Queries with what is known of each, from a table of any benchmark or the folder of a test collection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eyespot.runs.judged import Columns
from eyespot.storage.ids import required
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

ID = ("query_id", "query-id", "id", "_id", "qid")
TEXT = ("query_text", "text", "query", "question")


def read_queries(place: Path) -> dict[str, Columns]:
    """Queries by id, with `text` where a column tells it and all other columns as they are.

    `place` is a csv, tsv, jsonl or parquet table with one of the columns of `ID`, or a folder of a layout that lists
    its queries. Raises `UsageError` for a query that stands twice and for one without an id.
    """
    if place.is_dir():
        from eyespot.runs import read_judged

        found = read_judged(place).queries
        if not found:
            raise UsageError(f"{place} lists no queries; give the csv, jsonl or parquet file that does")
        return found
    table_found: dict[str, Columns] = {}
    for line, row in rows_of(place):
        query = required(place, line, row, *ID)
        if query in table_found:
            refuse(place, f"line {line}", f"has the query {query!r} a second time; keep one of the two")
        own = next(name for name in ID if name in row)
        text = next((name for name in TEXT if isinstance(row.get(name), str)), None)
        rest = {name: value for name, value in row.items() if name not in ("", own, text)}
        table_found[query] = rest if text is None else {"text": row[text], **rest}
    return table_found


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
