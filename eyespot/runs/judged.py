"""A test collection as its files give it: queries with their columns, judgements, and the images that they speak of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from eyespot.types import Qrels, Run

Columns = dict[str, Any]


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
