"""Stages over tables: each is a folder with its tables and a note of what it kept, dropped and hangs on.

WORK/02-filtered/kept.parquet     the rows that came, with the reason of those that were dropped
                 stage.json       digest, counts by reason, settings

A stage takes its name only once it is whole; a finished one whose inputs and settings are the same is not run again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from eyespot.curate.inat.tables import Tables, parquet
from eyespot.storage.atomic import new_folder
from eyespot.storage.files import write_whole
from eyespot.types import EyespotError, NothingFound

NOTE, KEPT = "stage.json", "kept.parquet"
Tell: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class StageCounts:
    """Observations of a stage: `came = kept + all of dropped`."""

    came: int
    kept: int
    dropped: Mapping[str, int]  # by reason, most first


@dataclass(frozen=True)
class FinishedStage:
    """A stage that is done: its folder, what it did to observations, and what else it has to tell."""

    name: str
    about: str
    folder: Path
    counts: StageCounts
    told: Mapping[str, Any]
    settings: Mapping[str, Any]
    seconds: float
    ran: bool

    @property
    def rows(self) -> str:
        """The rows it kept, as a table of SQL."""
        return f"(SELECT * EXCLUDE (reason) FROM {parquet(self.folder / KEPT)} WHERE reason IS NULL)"


Work: TypeAlias = Callable[[Tables, Path, "Mapping[str, FinishedStage]"], Mapping[str, Any]]


@dataclass(frozen=True)
class TableStage:
    """One step: `work` writes `kept.parquet` (with a column `reason`) and gives what else the note should tell.

    `settings` are those that its result hangs on; a new `version` does a finished stage again.
    """

    name: str
    about: str
    work: Work
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1


def run(
    stages: Sequence[TableStage], work: Path, tables: Tables, inputs: Mapping[str, str], tell: Tell
) -> list[FinishedStage]:
    """Every stage that is not finished, in turn; `inputs` are the digests of the files that all hangs on.

    Raises `EyespotError` for a stage that loses rows, and what the stages raise.
    """
    done: dict[str, FinishedStage] = {}
    digest, before = _digest(inputs), None
    for number, stage in enumerate(stages, 1):
        digest = _digest([digest, stage.name, stage.version, stage.settings])
        folder = work / f"{number:02d}-{stage.name}"
        tell(stage.about, number, len(stages))
        found = read_note(folder, stage, digest) or _worked(stage, folder, tables, (digest, done))
        if before is not None and before.counts.kept != found.counts.came:
            raise EyespotError(
                f"stage {found.name} got {before.counts.kept:,} observations and tells of {found.counts.came:,}; "
                f"remove {found.folder} and run again"
            )
        if not found.counts.kept:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in list(found.counts.dropped.items())[:4])
            raise NothingFound(f"no observation is left after {found.about}: {reasons or 'none came'}; ask for less")
        done[stage.name], before = found, found
    return list(done.values())


def read_note(folder: Path, stage: TableStage, digest: str) -> FinishedStage | None:
    """The finished stage of a folder, or None: not there, of other inputs or settings, or not readable."""
    try:
        told = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        if told["digest"] != digest or not (folder / KEPT).is_file():
            return None
        counts = StageCounts(told["came"], told["kept"], told["dropped"])
        rest = told["told"], stage.settings, float(told["seconds"])
        return FinishedStage(stage.name, stage.about, folder, counts, *rest, ran=False)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _worked(
    stage: TableStage, folder: Path, tables: Tables, known: tuple[str, Mapping[str, FinishedStage]]
) -> FinishedStage:
    digest, done = known
    since = time.monotonic()
    with new_folder(folder) as building:
        told = json.loads(json.dumps(stage.work(tables, building, done)))
        counts = counted(tables, building / KEPT)
        note = {"stage": stage.name, "digest": digest, "came": counts.came, "kept": counts.kept}
        seconds = round(time.monotonic() - since, 3)
        note |= {"dropped": counts.dropped, "told": told, "settings": stage.settings, "seconds": seconds}
        text = json.dumps(note, indent=1, ensure_ascii=False, default=str)
        write_whole(building / NOTE, lambda file: file.write(text.encode()))
    return FinishedStage(stage.name, stage.about, folder, counts, told, stage.settings, seconds, ran=True)


def counted(tables: Tables, path: Path) -> StageCounts:
    """How many rows of a table stayed, and how many went for which reason."""
    rows = tables.rows(f"SELECT reason, count(*) FROM {parquet(path)} GROUP BY reason ORDER BY 2 DESC, 1")
    by_reason = dict(rows)
    kept = by_reason.pop(None, 0)
    return StageCounts(sum(by_reason.values()) + kept, kept, by_reason)


def digests(files: Mapping[str, Path], work: Path, memory: str = "inputs.json") -> dict[str, str]:
    """The SHA-256 of each input; what is known of a file of the same size and time is not read again."""
    place = work / memory
    try:
        known = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    found = {name: _known_digest(path, known) for name, path in files.items()}
    kept = {str(path): [*_state(path), found[name]] for name, path in files.items()}
    write_whole(place, lambda file: file.write(json.dumps(kept, indent=1).encode()))
    return found


def _known_digest(path: Path, known: Mapping[str, Any]) -> str:
    before = known.get(str(path))
    if isinstance(before, list) and before[:2] == _state(path):
        return str(before[2])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
