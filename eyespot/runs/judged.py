"""A test collection as its files give it: queries with their columns, judgements, and the images that they speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, required
from eyespot.types import Qrels, Run, UsageError

Columns = dict[str, Any]
ID = ("query_id", "query-id", "id", "_id", "qid")
TEXT = ("query_text", "text", "query", "question")


@dataclass(frozen=True)
class JudgedQueries:
    """Queries by id with what is known of each (`text`, `image`, `category`, …), and what is relevant to them.

    `images` are the images that the files name, with what they say of each; empty where no file lists them.
    `candidates` is there where a query may rank only some images, in the order in which they were handed out.
    """

    queries: dict[str, Columns]
    qrels: Qrels
    images: dict[str, Columns] = field(default_factory=dict)
    candidates: Run | None = None

    def among(self, column: str, value: Any) -> JudgedQueries:
        """The queries with this value in a column, and what was judged and handed out for them."""
        return self.only(query for query, facts in self.queries.items() if facts.get(column) == value)

    def only(self, queries: Iterable[str]) -> JudgedQueries:
        """These queries, and what was judged and handed out for them."""
        subset = {query: self.queries[query] for query in queries}
        grades = {query: self.qrels[query] for query in subset if query in self.qrels}
        candidates = None if self.candidates is None else self.candidates.only(subset)
        return JudgedQueries(subset, Qrels(grades, self.qrels.header), self.images, candidates)


def queries_of_table(place: Path) -> dict[str, Columns]:
    """Queries of a csv, tsv, jsonl or parquet table with one of the columns of `ID`, as `read_queries` gives them."""
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
