"""The table of queries: searched, filtered and sorted as its address says, so that it works without scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from eyespot.web.annotate._overview import GROUPINGS, OverviewRow

Assigned = Mapping[str, Sequence[str]]
NOBODY = "-"  # as a person: queries that are given to nobody
SORTS: dict[str, Callable[[OverviewRow, Assigned], Any]] = {
    "query": lambda row, _: row.wanted.text.casefold(),
    "category": lambda row, _: (not row.groupings, [text.casefold() for text in row.groupings]),
    "listed": lambda row, _: row.listed,
    "labelled": lambda row, _: row.labelled,
    "relevant": lambda row, _: row.relevant,
    "progress": lambda row, _: (row.share, row.state == "done", row.labelled),
    "people": lambda row, assigned: (not assigned.get(row.wanted.id), assigned.get(row.wanted.id, ())),
    "disputed": lambda row, _: row.disputed,
    "faults": lambda row, _: len(row.faults),
}
COLUMNS = {
    "query": "Query",
    "category": "Category",
    "listed": "Listed",
    "labelled": "Labelled",
    "relevant": "Relevant",
    "progress": "Progress",
    "people": "People",
    "disputed": "Disputed",
    "faults": "To fix",
}
Sort = Literal["", "query", "category", "listed", "labelled", "relevant", "progress", "people", "disputed", "faults"]
NUMBERS = {"listed", "labelled", "relevant", "disputed", "faults"}


class TableRequest(BaseModel):
    """What the address of the table says."""

    q: str = Field("", max_length=300)
    sort: Sort = ""
    down: bool = False
    state: Literal["", "new", "going", "audit", "fix", "done", "disputed"] = ""
    person: str = Field("", max_length=80)
    label: str = Field("", max_length=100)
    nothing: bool = False  # whether somebody who asked for their next query has none

    def address(self, **changes: object) -> str:
        """The address with some changes; what is as it would be without it is left out."""
        params = {**self.model_dump(exclude={"nothing"}), **changes}
        pairs = [
            (name, str(int(value)) if isinstance(value, bool) else value) for name, value in params.items() if value
        ]
        return f"/annotate?{urlencode(pairs)}" if pairs else "/annotate"

    def sorted_by(self, column: str) -> str:
        """The address at which the table is sorted by a column, the other way round where it is already."""
        return self.address(sort=column, down=self.sort == column and not self.down)

    @property
    def narrowed(self) -> bool:
        """Whether some queries may be hidden."""
        return bool(self.q or self.state or self.person or self.label)

    def rows(self, rows: Sequence[OverviewRow], assigned: Assigned) -> list[OverviewRow]:
        """The queries that fit, in order; equal ones as they came."""
        found = [row for row in rows if self._fits(row, assigned.get(row.wanted.id, ()))]
        if self.sort:
            found.sort(key=lambda row: SORTS[self.sort](row, assigned), reverse=self.down)
        return found

    def _fits(self, row: OverviewRow, given: Sequence[str]) -> bool:
        words = " ".join([row.wanted.id, row.wanted.text, *row.groupings]).casefold()
        whose = {NOBODY} if not given else set(given)
        return (
            all(word in words for word in self.q.casefold().split())
            and (not self.state or (row.disputed > 0 if self.state == "disputed" else row.state == self.state))
            and (not self.person or self.person in whose or self.person in row.people)
            and (not self.label or self.label in row.groupings)
        )


def labels_of(rows: Sequence[OverviewRow]) -> list[str]:
    """All categories that a query belongs to, in the order of the alphabet."""
    return sorted({row.about[name] for row in rows for name in GROUPINGS} - {""}, key=str.casefold)


def next_of(rows: Sequence[OverviewRow], assigned: Assigned, who: str, after: str = "") -> OverviewRow | None:
    """The query that somebody had better label next: their own first, then nobody's, the least done first."""

    def turn(row: OverviewRow) -> tuple[int, float, int]:
        given = assigned.get(row.wanted.id, ())
        return 0 if who in given else 1 if not given else 2, row.share, row.labelled

    open_rows = [row for row in rows if row.state in ("new", "going", "audit") and row.wanted.id != after]
    return min(open_rows, key=turn, default=None)
