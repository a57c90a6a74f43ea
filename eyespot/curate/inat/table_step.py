"""A step over tables: DuckDB or Arrow makes `kept.parquet` and `dropped.parquet`, by the number of the row.

WORK/steps/02-filtered/kept.parquet       the rows that go on
                       dropped.parquet    number and reason of those that do not
                       notes.json         other results of the step
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eyespot.curate.inat.tables import Tables, parquet
from eyespot.pipelines import Context, Records, SqlStep, StepResult
from eyespot.storage.atomic import write_whole
from eyespot.types import NothingFound

KEPT, DROPPED, NOTES = "kept.parquet", "dropped.parquet", "notes.json"
TITLES = {  # shown while a step runs
    "read": "reading observations",
    "filtered": "date, place and grade",
    "aligned": "taxonomy",
    "photographed": "photos and licences",
    "grouped": "observation groups",
    "drawn": "drawing",
    "listed": "listing",
}


class StepTables(NamedTuple):
    """The database of a step, its folder, and the folders of the earlier steps that it reads."""

    tables: Tables
    folder: Path
    earlier: Mapping[str, Path]

    def rows(self, step: str) -> str:
        """The rows that an earlier step kept, as an SQL table."""
        return parquet(self.earlier[step] / KEPT)

    def write(self, sql: str) -> None:
        """Keep every row of a query."""
        self.tables.write(sql, self.folder / KEPT)
        self.tables.write("SELECT 0::BIGINT AS row, '' AS reason LIMIT 0", self.folder / DROPPED)

    def split(self, sql: str) -> None:
        """Keep the rows of a query without a `reason`, and drop the others."""
        every = self.folder / "every.parquet"
        self.tables.write(sql, every)
        rows = parquet(every)
        self.tables.write(f"SELECT * EXCLUDE (reason) FROM {rows} WHERE reason IS NULL", self.folder / KEPT)
        self.tables.write(f"SELECT row, reason FROM {rows} WHERE reason IS NOT NULL", self.folder / DROPPED)
        every.unlink()


Work: TypeAlias = Callable[[StepTables], Mapping[str, Any]]
"""Leaves `kept.parquet` and `dropped.parquet` and returns the notes of the step."""


def table_work(work: Work, tables: Tables) -> SqlStep:
    """`work` as that of a step; the runner counts the rows of its tables.

    Raises `NothingFound` if the step before it kept nothing.
    """

    def run(records: Records, folder: Path, context: Context) -> int:
        earlier = {name: folder_of(output) for name, output in context.earlier.items()}
        if records.path is not None:
            before = folder_of(records)
            earlier[step_name(before)] = before
            if not len(records):
                dropped = tables.rows(f"SELECT reason, count(*) FROM {parquet(before / DROPPED)} GROUP BY reason")
                reasons = [f"{reason} ({count:,})" for reason, count in most_first(dict(dropped)).items()]
                listed = ", ".join(reasons[:4]) or "none came"
                title = TITLES[step_name(before)]
                raise NothingFound(f"no observation is left after {title}: {listed}; ask for less")
        context.tell(TITLES[context.step], list(TITLES).index(context.step) + 1, len(TITLES))
        notes = json.dumps(work(StepTables(tables, folder, earlier)), ensure_ascii=False)
        write_whole(folder / NOTES, lambda file: file.write(notes.encode()))
        return 0 if records.path else tables.number(f"SELECT count(*) FROM {parquet(folder / KEPT)}")

    return SqlStep(run, key="row")


def folder_of(records: Records) -> Path:
    """The folder of the step that kept these records."""
    assert records.path is not None
    return records.path.parent


def step_name(folder: Path) -> str:
    """The name of the step whose folder this is: `filtered` of `02-filtered`."""
    return folder.name.partition("-")[2]


def notes_of(step: StepResult) -> dict[str, Any]:
    """The notes of a finished step."""
    notes: dict[str, Any] = json.loads((step.folder / NOTES).read_text(encoding="utf-8"))
    return notes


def most_first(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons and counts, the most frequent first."""
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
