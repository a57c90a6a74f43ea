"""A step: a name, what it does to records, and all that its results depend on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeAlias

from eyespot.llms.settings import unpriced
from eyespot.pipelines.outcomes import Outcome, Record, Records, line_of
from eyespot.storage.atomic import write_whole
from eyespot.storage.digests import file_sha256, json_sha256
from eyespot.types import BudgetMeter, Exchange, Progress, Spent, UsageError

Prompt: TypeAlias = Mapping[str, Any]
"""What is put to a model, as JSON: the model, the words, digests of pictures, settings such as the temperature.

Fields whose name begins with `_` (a picture's path) reach the client and are not part of what an answer is kept under.
"""
Ask: TypeAlias = Callable[[Prompt], dict[str, Any]]


class CallMeter(BudgetMeter, Protocol):
    """What a client counts its requests by, one after the other.

    `take` counts a request with what it may cost. One that is never paid for stays counted with that.
    """

    def expect(self, model: str, spent: Spent) -> None:
        """Say what a request to this model may cost; without this the step's `expects` is taken."""
        ...

    def report(self, exchange: Exchange) -> None:
        """Say what was sent and what came of it; without this the answer is taken to be as it was asked for."""
        ...


@dataclass(frozen=True)
class Context:
    """What a step may use besides its records.

    `ask` puts a prompt to a model: an answer that was ever given comes from the disk, for nothing. It raises
    `NoAnswer` for this prompt alone, and what ends the run (the budget is spent, a wrong key) as it comes.
    """

    step: str
    seed: int
    ask: Ask
    tell: Progress
    earlier: Mapping[str, Records] = field(default_factory=dict)  # what the steps it `needs` kept, by their names
    limit: int | None = None  # how many records are wanted of a source; of a `BatchStep` the runner takes no more

    def rng(self, *names: str) -> Random:
        """A random generator that depends on the seed, the step and these names alone, not on the order of records."""
        return Random("\x1f".join((str(self.seed), self.step, *names)))


@dataclass(frozen=True)
class MapStep:
    """Work on one record, knowing no other: its outcome, or several where a record becomes many.

    Each record's outcomes are kept as they come, so a kill costs at most those in flight; `workers` threads take
    records at once, and the order of what comes out is still that of what came in. For what asks a model or looks at
    a picture. A record that is unchanged is never worked on again, whatever became of the others.
    """

    work: Callable[[Record, Context], Outcome | Iterable[Outcome]]
    workers: int = 1


@dataclass(frozen=True)
class BatchStep:
    """Work on all records together, which may be iterated more than once: sources, clustering, near-duplicates, splits.

    Outcomes are given one by one, in the order in which they shall stand. It is done at once or again: what must not
    be lost on the way goes through `Context.ask`, or is an `MapStep` of its own.
    """

    work: Callable[[Records, Context], Iterable[Outcome]]


@dataclass(frozen=True)
class SqlStep:
    """Work on all records as a file, for what DuckDB or arrow does to millions of rows at a time.

    It gets the records (`path` is JSONL or parquet) and an empty folder, where it leaves `kept.parquet` (or `.jsonl`)
    and, with a column `reason`, `dropped.parquet` (or `.jsonl`); it returns how many of these rows were made from no
    record that came. Both have a column `id` of text, or another `key` of whole numbers that tells rows apart.
    """

    work: Callable[[Records, Path, Context], int]
    key: str = "id"


@dataclass(frozen=True)
class Step:
    """One step of a pipeline; its digest is that of all fields but functions, and so changes with its results.

    `version` rises when the code gives other results. `prompts` are texts, `models` what is asked with which options,
    `inputs` digests of what is read besides the records (`digest_of`). `needs` names earlier steps whose records it
    reads as well, `needs_drops` those of them whose dropped records it reads, too. `expects` is the likely price of one
    record.
    """

    name: str
    work: MapStep | BatchStep | SqlStep
    version: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    needs_drops: tuple[str, ...] = ()
    about: str = ""  # a sentence for the data card
    expects: Spent = field(default_factory=Spent)
    always: bool = False  # runs every time: it looks at what changes outside, such as a folder of photos
    grows: Callable[[int], int] | None = None  # for plans: the most that is kept of so many records; None: all
    asking: int | None = None  # for plans: how many records ask a model at most; None: all

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,60}", self.name):
            raise UsageError(f"a step cannot be called {self.name!r}; use letters, digits, - and _, a letter first")

    def cost(self, spent: Spent) -> dict[str, Any]:
        """The parts of a cost by name; the money is None where a model has no known price: a sum would be too small."""
        return {**spent._asdict(), "money": None if spent.tokens and unpriced(self.models) else spent.money}

    def digest(self, seed: int = 0) -> str:
        """Thirty-two hex digits over all that its results depend on, except the records that come."""
        kind = _KINDS[type(self.work)]
        return digest_of_json(
            [self.name, kind, self.version, self.settings, self.prompts, self.models, self.inputs, seed]
        )


# A digest holds these names: results made by earlier versions of eyespot stay valid.
_KINDS: dict[type, str] = {MapStep: "Each", BatchStep: "Whole", SqlStep: "Table"}


# -- digests ----------------------------------------------------------------------------------------------------


def digest_of_json(value: Any) -> str:
    """Thirty-two hex digits of a value of JSON, whatever the order of its names."""
    return json_sha256(json.loads(line_of(value)))[:32]


def digest_of(place: Path | str) -> str:
    """The SHA-256 of a file; of a folder that of the names, sizes and times of its files, as indexing tells change.

    Raises `UsageError` if nothing is there, or what has no end, as a device or a pipe.
    """
    if (place := Path(place)).is_dir():
        files = [(path.relative_to(place).as_posix(), path.stat()) for path in place.rglob("*") if path.is_file()]
        return digest_of_json(sorted([name, status.st_size, status.st_mtime_ns] for name, status in files))
    try:
        if place.exists() and not place.is_file():
            raise UsageError(f"{place} is not a file; name one, or a folder")
        return file_sha256(place)
    except OSError as error:
        raise UsageError(f"{place} cannot be read ({error.strerror}); name what is there") from None


def digests_of(files: Mapping[str, Path], memory: Path) -> dict[str, str]:
    """The SHA-256 of each file; one whose size and time stay as the JSON file `memory` has them is not read again."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    digests: dict[str, str] = {}
    entries: dict[str, list[int | str]] = {}
    for name, path in files.items():
        status, entry = path.stat(), known.get(str(path))
        state = [status.st_size, status.st_mtime_ns]
        digests[name] = str(entry[2]) if isinstance(entry, list) and entry[:2] == state else digest_of(path)
        entries[str(path)] = [*state, digests[name]]
    write_whole(memory, lambda file: file.write(json.dumps(entries, indent=1).encode()))
    return digests
