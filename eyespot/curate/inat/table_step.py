"""A step over tables: DuckDB or Arrow makes `kept.parquet` and `dropped.parquet`, by the number of the row.

WORK/steps/02-filtered/kept.parquet       the rows that go on
                       dropped.parquet    number and reason of those that do not
                       notes.json         what else the step has to tell
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eyespot.curate.inat.tables import Tables, parquet
from eyespot.pipelines import Context, Records, SqlStep, StepResult
from eyespot.storage.files import write_whole
from eyespot.types import NothingFound

KEPT, DROPPED, NOTES = "kept.parquet", "dropped.parquet", "notes.json"
TITLES = {  # what people read while a step works
    "read": "reading observations",
    "filtered": "date, place and grade",
    "aligned": "taxonomy",
    "photographed": "photos and licences",
    "grouped": "observation groups",
    "drawn": "drawing",
    "listed": "listing",
}


class StepTables(NamedTuple):
    """What a step works with: the database, its folder, and the folders of the earlier steps that it reads."""

    tables: Tables
    folder: Path
    earlier: Mapping[str, Path]

    def rows(self, step: str) -> str:
        """The rows that an earlier step kept, as a table of SQL."""
        return parquet(self.earlier[step] / KEPT)

    def write(self, sql: str) -> None:
        """Every row that a query gives goes on."""
        self.tables.write(sql, self.folder / KEPT)
        self.tables.write("SELECT 0::BIGINT AS row, '' AS reason LIMIT 0", self.folder / DROPPED)

    def split(self, sql: str) -> None:
        """The rows that a query gives without a `reason` go on."""
        every = self.folder / "every.parquet"
        self.tables.write(sql, every)
        rows = parquet(every)
        self.tables.write(f"SELECT * EXCLUDE (reason) FROM {rows} WHERE reason IS NULL", self.folder / KEPT)
        self.tables.write(f"SELECT row, reason FROM {rows} WHERE reason IS NOT NULL", self.folder / DROPPED)
        every.unlink()


Work: TypeAlias = Callable[[StepTables], Mapping[str, Any]]
"""Leaves `kept.parquet` and `dropped.parquet` and returns the notes of the step."""


def table_work(work: Work, tables: Tables) -> SqlStep:
    """`work` as that of a step; the runner counts what it left.

    Raises `NothingFound` where the step before it kept nothing: of no rows nothing can be made.
    """

    def run(records: Records, folder: Path, context: Context) -> int:
        earlier = {name: folder_of(kept) for name, kept in context.earlier.items()}
        if records.path is not None:
            before = folder_of(records)
            earlier[step_name(before)] = before
            if not len(records):
                raise NothingFound(_nothing_left(tables, before))
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
    """What a finished step has to tell besides its counts."""
    notes: dict[str, Any] = json.loads((step.folder / NOTES).read_text(encoding="utf-8"))
    return notes


def most_first(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons and counts, those of most rows first."""
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def _nothing_left(tables: Tables, folder: Path) -> str:
    dropped = parquet(folder / DROPPED)
    reasons = most_first(dict(tables.rows(f"SELECT reason, count(*) FROM {dropped} GROUP BY reason")))
    listed = ", ".join(f"{reason} ({count:,})" for reason, count in list(reasons.items())[:4])
    return f"no observation is left after {TITLES[step_name(folder)]}: {listed or 'none came'}; ask for less"
