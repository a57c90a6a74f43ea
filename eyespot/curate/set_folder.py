"""Where a finished set goes: to `OUT/set`, or beside it where a run lost what the set there has.

A server that fails in the middle of a run leaves records without an answer. The run still ends, with a smaller set, and
must not cost the user the larger one that an earlier run made.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.pipelines import StepResult
from eyespot.storage.atomic import make_folder, write_whole

SET, INCOMPLETE = "set", "set-incomplete"
STATE = Path("work") / "set.json"  # how many records had failed when the set was written


class SetSize(NamedTuple):
    """A set's main table with its rows, and how many records of its run failed."""

    table: str
    rows: int
    failed: int

    @classmethod
    def of(cls, table: str, rows: int, done: Sequence[StepResult]) -> SetSize:
        """The set that these steps made."""
        return cls(table, rows, sum(one.counts.failed for one in done))


def set_folder(out: Path, size: SetSize, replace: bool = False) -> Path:
    """The folder for a set: `out/set`, or `out/set-incomplete` where the set in place is the better one.

    It is where the new one is empty, or where more records failed and the new one has fewer rows. With `replace` it is
    overwritten all the same.
    """
    there = _rows(out / SET / size.table)
    if replace or not there:
        return out / SET
    lost = size.failed > _failed(out / STATE) and size.rows < there
    return out / (INCOMPLETE if lost or not size.rows else SET)


def settle(out: Path, folder: Path, size: SetSize) -> None:
    """Note the state of a set that was written in place, and remove an incomplete one beside it."""
    if folder == out / SET:
        make_folder((out / STATE).parent)
        write_whole(out / STATE, lambda file: file.write(json.dumps({"failed": size.failed}).encode()))
        shutil.rmtree(out / INCOMPLETE, ignore_errors=True)


def set_note(out: Path, folder: Path) -> str:
    """What a user should know of a set that was not put in place; empty for another."""
    if folder == out / SET:
        return ""
    return (
        f"the earlier set stays in {out / SET}, because this run lost records that it has; the new one is in {folder}; "
        "retry what failed with --retry-failed, or overwrite the earlier set with --replace"
    )


def _rows(table: Path) -> int:
    """The rows of a table; 0 without one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: int = pq.read_metadata(table).num_rows
        return rows
    except (OSError, pa.ArrowException):
        return 0


def _failed(state: Path) -> int:
    """How many records had failed; 0 where nobody noted it."""
    try:
        return int(json.loads(state.read_text(encoding="utf-8"))["failed"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
