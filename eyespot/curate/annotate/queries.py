"""The queries of an annotation, in and out as INQUIRE's CSV with what an intake adds: lingo and three criteria.

`query_id, query_text, supercategory, category, iconic_group` are INQUIRE's columns; `lingo` says whether the text uses
terms of science, and is empty where nobody said so. A query is taken in if it is `visible` in the picture alone,
`feasible` to label over the whole collection, and `of_interest` to an expert (section 3.2); each is yes, no or open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from eyespot.runs.inquire import read_queries
from eyespot.runs.judged import Columns
from eyespot.storage.tables import write_csv
from eyespot.storage.text_files import refuse
from eyespot.types import Query

COLUMNS = ("supercategory", "category", "iconic_group", "lingo")
CRITERIA = {  # of the intake, in words that go on after "it is"
    "visible": "visible in the picture alone",
    "feasible": "feasible to label over all photos",
    "of_interest": "of interest to an expert",
}
INTAKE = tuple(CRITERIA)
_YES_OR_NO = {
    **dict.fromkeys(("yes", "y", "true", "1"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0"), "no"),
    "": "",
}


@dataclass(frozen=True)
class AnnotationQuery:
    """A query to be labelled: its id, its words, and what is known of it by column."""

    id: str
    text: str
    facts: Columns

    @property
    def query(self) -> Query:
        """What is asked of an encoder, and what judgements are kept under."""
        return Query.words(self.text, self.id)

    @property
    def failing(self) -> list[str]:
        """The criteria of intake to which somebody said no."""
        return [criterion for criterion in INTAKE if self.facts.get(criterion) == "no"]

    @property
    def open(self) -> list[str]:
        """The criteria of intake to which nobody has said anything."""
        return [criterion for criterion in INTAKE if not self.facts.get(criterion)]


def read(path: Path) -> list[AnnotationQuery]:
    """The queries of a CSV; `UsageError` names a line without id or text, twice the same id, and a half yes."""
    found = read_queries(path)
    annotation_queries = []
    for id, facts in found.items():
        text = facts.pop("text")
        columns = {name: str(value or "").strip() for name, value in facts.items()}
        for name in ("lingo", *INTAKE):
            word = columns.get(name, "").casefold()
            if word not in _YES_OR_NO:
                refuse(path, f"query {id!r}", f"has {columns[name]!r} as {name}; expected yes, no or nothing")
            columns[name] = _YES_OR_NO[word]
        annotation_queries.append(AnnotationQuery(id, text, columns))
    return annotation_queries


def write(path: Path, queries: Iterable[AnnotationQuery]) -> None:
    """The queries as INQUIRE has them, whole or not at all: an unnamed count first, then its columns, then others."""
    rows = list(queries)
    others = dict.fromkeys(name for wanted in rows for name in wanted.facts)
    names = [*COLUMNS, *(name for name in others if name not in COLUMNS)]
    cells = (
        [number, wanted.id, wanted.text, *(wanted.facts.get(name, "") for name in names)]
        for number, wanted in enumerate(rows)
    )
    write_csv(path, chain([["", "query_id", "query_text", *names]], cells))
