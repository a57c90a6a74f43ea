"""A step on disk: what it kept, what it dropped and why, and how many of each; there as a whole or not at all.

WORK/steps/02-questions/kept.jsonl      a record a line
                        dropped.jsonl   reason, detail, the record it was made from, whether it failed, the record
                        step.toml       digest, counts, settings, prompts, models
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from eyespot.pipelines.outcomes import Added, Drop, Failed, Keep, Outcome, Record, Records, Unaccounted, line_of, rows
from eyespot.pipelines.step import Step, digest_of
from eyespot.storage.atomic import put_folder
from eyespot.storage.systems import usable_cores
from eyespot.storage.text_files import toml_text
from eyespot.types import EyespotError

KEPT, DROPPED, MANIFEST = "kept", "dropped", "step.toml"
ENDINGS = (".jsonl", ".parquet")


class StepCounts(NamedTuple):
    """Records of a step: `came + added = kept + all of dropped`; `failed` are among the dropped."""

    came: int
    added: int  # made here: a record that became several counts with all but one of them
    kept: int
    dropped: Mapping[str, int]  # by reason
    failed: int = 0

    def accounted(self, name: str) -> StepCounts:
        """Itself; `Unaccounted` if a record is missing or there is one too many."""
        lost = self.came + self.added - self.kept - sum(self.dropped.values())
        if lost:
            raise Unaccounted(
                f"step {name} got {self.came:,} records, made {self.added:,}, kept {self.kept:,} and dropped "
                f"{sum(self.dropped.values()):,}: {abs(lost):,} are {'missing' if lost > 0 else 'too many'}"
            )
        return self


@dataclass(frozen=True)
class CachedResult:
    """A finished step as its folder tells it."""

    digest: str
    counts: StepCounts
    records: Records


# -- writing ----------------------------------------------------------------------------------------------------


class StepWriter:
    """Writes the outcomes of a step; counts, apart from one another, what came, what was added and what stands."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._ids = name, set[str]()
        self._files: dict[str, IO[bytes]] = {name: (folder / f"{name}.jsonl").open("wb") for name in (KEPT, DROPPED)}
        self._dropped: Counter[str] = Counter()
        self._came = self._added = self._kept = self._failed = 0

    def settle(self, record: Record, outcomes: list[Outcome]) -> None:
        """All outcomes of one record that came."""
        id = id_of(record)
        if not outcomes:
            raise Unaccounted(f"step {self._name} says nothing of the record {id!r}; let it keep or drop every one")
        self._came += 1
        self._added += len(outcomes) - 1
        for outcome in outcomes:
            self._write(outcome, id)

    def settle_all(self, records: Records, outcomes: Iterable[Outcome], limit: int | None = None) -> Iterator[Outcome]:
        """The outcomes of all records together, each handed on once it is written; no more once `limit` are kept."""
        times = dict.fromkeys((id_of(record) for record in records), 0)
        self._came += len(times)
        for outcome in outcomes:
            origin = None if isinstance(outcome, Added) else outcome.of or id_of(outcome.record)
            if origin is not None and origin not in times:
                never = f"gave a record made from {origin!r}, which never came"
                raise Unaccounted(f"step {self._name} {never}; say what it is `of`, or use Added")
            self._added += origin is None or times[origin] > 0
            if origin is not None:
                times[origin] += 1
            self._write(outcome, origin)
            yield outcome
            if self._kept == limit:
                break
        if lost := [id for id, count in times.items() if not count]:
            few = f"{len(lost):,} records, {lost[0]!r} the first"
            raise Unaccounted(f"step {self._name} says nothing of {few}; let it keep or drop every one")

    def _write(self, outcome: Outcome, of: str | None) -> None:
        """One outcome; `of` is the id of the record it comes from. Raises `Unaccounted` for an id that is there."""
        if isinstance(outcome, Keep | Added):
            id = id_of(outcome.record)
            if id in self._ids:
                raise Unaccounted(f"the id {id!r} is given twice; a record made from another needs an id of its own")
            self._ids.add(id)
            self._files[KEPT].write(line_of(outcome.record))
            self._kept += 1
            return
        failed = isinstance(outcome, Failed)
        fields = {"reason": outcome.reason, "detail": outcome.detail, "of": of, "failed": failed}
        self._files[DROPPED].write(line_of({"id": outcome.record.get("id"), **fields, "record": outcome.record}))
        self._dropped[outcome.reason] += 1
        self._failed += failed

    def counts(self) -> StepCounts:
        """The balance; `Unaccounted` if it is none."""
        dropped = dict(sorted(self._dropped.items()))
        return StepCounts(self._came, self._added, self._kept, dropped, self._failed).accounted(self._name)

    def close(self) -> None:
        """Write both files to their ends."""
        for file in self._files.values():
            file.close()


def id_of(record: Record) -> str:
    """Its id; `Unaccounted` if there is none."""
    id = record.get("id")
    if not isinstance(id, str) or not id:
        raise Unaccounted(f"a record has the id {id!r}; give each a text of its own")
    return id


def write_manifest(folder: Path, step: Step, digests: tuple[str, str], counts: StepCounts) -> None:
    """`step.toml`, which makes the step a finished one, with the digests of its work and of all that it read.

    Nothing of time or cost stands there, so that it is the same every time.
    """
    path = file_of(folder, KEPT)
    head = {"step": step.name, "version": step.version, "about": step.about, "work": digests[0], "digest": digests[1]}
    numbers = {"came": counts.came, "added": counts.added, "kept": counts.kept, "failed": counts.failed}
    tables = {"counts": {"file": path.name, "sha256": digest_of(path), **numbers}, "dropped": counts.dropped}
    tables |= {"settings": step.settings, "prompts": step.prompts, "models": step.models, "inputs": step.inputs}
    plain = json.loads(line_of(head | {name: table for name, table in tables.items() if table}))
    (folder / MANIFEST).write_bytes(toml_text(plain).encode("utf-8", "replace"))


# -- reading ----------------------------------------------------------------------------------------------------


def place_of(work: Path, number: int, step: Step, *, move: bool = False) -> Path:
    """Where the step's folder lies: under its number, or another if the step lay elsewhere and it is not to move."""
    place = work / "steps" / f"{number:02d}-{step.name}"
    numbered = (work / "steps").glob(f"[0-9]*-{step.name}")
    earlier = [path for path in numbered if path.name.removesuffix(f"-{step.name}").isdecimal()]
    if place.exists() or not earlier:
        return place
    if move:
        put_folder(earlier[0], place)
    return place if move else earlier[0]


def cached_result(folder: Path) -> CachedResult | None:
    """The finished step in a folder; None if there is none, or it cannot be read and is to be done again."""
    try:
        manifest = tomllib.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        written = manifest["counts"]
        dropped = manifest.get("dropped", {})
        counts = StepCounts(written["came"], written["added"], written["kept"], dropped, written["failed"])
        records = Records(folder / written["file"], counts.kept, written["sha256"])
        return CachedResult(manifest["digest"], counts, records) if (folder / written["file"]).is_file() else None
    except (OSError, KeyError, ValueError):
        return None


def file_of(folder: Path, name: str) -> Path:
    """`kept` or `dropped` of a step, JSONL or parquet; `EyespotError` if it is not there."""
    found = [folder / f"{name}{ending}" for ending in ENDINGS if (folder / f"{name}{ending}").is_file()]
    if not found:
        raise EyespotError(f"{folder} holds no {name}.jsonl or {name}.parquet; the step must leave one there")
    return found[0]


def counted(folder: Path, added: int, came: int, key: str = "id") -> StepCounts:
    """What a `SqlStep` left in a folder, counted from its files."""
    keep, dropped = file_of(folder, KEPT), file_of(folder, DROPPED)
    name = '"' + key.replace('"', '""') + '"'
    texts = f"count(*) FILTER (typeof({name}) = 'VARCHAR')" if key == "id" else f"count({name})"
    rows, ids, texts = (_query_file(keep, f"count(*), count(DISTINCT {name}), {texts}") or [(0, 0, 0)])[0]
    if not rows == ids == texts:
        raise Unaccounted(f"{keep.name} has {rows:,} rows and {ids:,} ids, {texts:,} of them text; each needs its own")
    reasons = {str(why or ""): count for why, count in _query_file(dropped, "reason, count(*)", "GROUP BY reason")}
    if "" in reasons:
        raise Unaccounted(f"{reasons['']:,} rows are dropped without a reason; fill the column `reason`")
    return StepCounts(came, added, rows, dict(sorted(reasons.items())))


@cache
def _database() -> Any:
    """One for all files: to open a DuckDB takes twenty times as long as to count a small file."""
    import duckdb

    return duckdb.connect(config={"threads": usable_cores()})


def _query_file(path: Path, what: str, end: str = "") -> list[Any]:
    import duckdb

    if not path.stat().st_size:  # a JSONL file without a line, in which DuckDB finds no columns
        return []
    reader = "read_parquet" if path.suffix == ".parquet" else "read_ndjson_auto"
    try:
        with _database().cursor() as sql:
            rows: list[Any] = sql.execute(f"SELECT {what} FROM {reader}(?) {end}", [str(path)]).fetchall()
    except duckdb.Error as error:
        raise EyespotError(f"{path.name} of a step cannot be counted ({error}); give it `id` and `reason`") from None
    return rows


def digest_of_drops(records: Records) -> str:
    """The SHA-256 of what the step that kept these records dropped."""
    assert records.path is not None
    return digest_of(file_of(records.path.parent, DROPPED))


def drops(folder: Path | str) -> Iterator[Drop | Failed]:
    """What a step dropped, and why."""
    for row in rows(file_of(Path(folder), DROPPED)):
        kind = Failed if row.get("failed") else Drop
        record = row.get("record") or {name: value for name, value in row.items() if name not in ("reason", "detail")}
        yield kind(record, row["reason"], row.get("detail") or "", row.get("of"))
