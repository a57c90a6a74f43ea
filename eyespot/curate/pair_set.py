"""What the sources of pairs share: a folder for each of their files, put in place once it is whole.

This is not a pipeline of `eyespot.pipelines`: each file is read once, no model is asked, and its folder is the record
that it is done (docs/decisions/0009-owners.md).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eyespot.curate.set_folder import TEXT, new_table
from eyespot.storage.atomic import make_folder, whole_folder, write_whole
from eyespot.storage.digests import text_digest
from eyespot.storage.text_files import json_of
from eyespot.types import NothingFound, Progress, UsageError

NOTE = "pairs.json"
PICTURES, CAPTIONS, TO_CAPTION = "pictures.parquet", "captions.parquet", "to_caption.parquet"
LEFT_OUT = "is left out by --without"


@dataclass(frozen=True)
class PairRow:
    """A row of one of a part's tables."""

    table: str
    values: Mapping[str, str | int | None]


@dataclass(frozen=True)
class LeftOut:
    """What gives no pair: where it stands in its file, and why."""

    place: str
    reason: str


def digest(names: Iterable[str]) -> str:
    """Sixteen hex digits that tell these names from others, in whatever order; nothing for none."""
    ordered = sorted(names)
    return text_digest(*ordered) if any(ordered) or len(ordered) > 1 else ""


class PairSource(Protocol):
    """A published set on disk, in files that are read one after the other.

    What has to be known before the first part it looks over in `begin(done, tell)`, if it has that; `done` are the
    folders of parts made before.
    """

    @property
    def files(self) -> Sequence[Path]:
        """Its files; each makes a part."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All else that decides what is made, as JSON has it."""
        ...

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The tables of a part with their columns."""
        ...

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """A file's rows in their order; memory does not grow with it beyond what `begin` keeps."""
        ...


@dataclass
class PairsResult:
    """What was made now: rows of each table, what was left out and why, and how many parts were there already.

    `failures` are files that could not be read, with the reason; run it again when they are fixed.
    """

    parts: int = 0
    before: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)  # reason → how many
    examples: dict[str, str] = field(default_factory=dict)  # reason → the first place
    failures: list[LeftOut] = field(default_factory=list)

    def add(self, other: PairsResult) -> None:
        """One part more."""
        self.parts += 1
        self.rows += other.rows
        self.left_out += other.left_out
        self.examples = other.examples | self.examples


def make(source: PairSource, out: Path, tell: Progress) -> PairsResult:
    """Every part that is not there yet, each whole or not at all; run it again after it was cut.

    Raises `UsageError` for a folder with pairs of something else and for files of one name, `NothingFound` if there is
    not one row.
    """
    parts = {file: out / file.stem for file in source.files}
    for file, part in parts.items():
        if not file.is_file():
            raise UsageError(f"there is no file {file}")
        if list(parts.values()).count(part) > 1:
            raise UsageError(f"two files are called {file.stem}; make them into folders of their own with --out")
    begin_folder(out, {"of": type(source).__name__.lower(), **source.settings})
    made = fill_parts(source, parts, tell)
    if not made.before and not made.rows:
        for part in parts.values():  # without a row they would refuse the corrected line
            shutil.rmtree(part, ignore_errors=True)
        why = f"{source.files[0]} gives no pair: {next(iter(made.left_out), 'it is empty')}"
        raise NothingFound(made.failures[0].reason if made.failures else why)
    return made


def fill_parts(source: PairSource, parts: Mapping[Path, Path], tell: Progress) -> PairsResult:
    """The parts that are not there yet, each from what `source.read` gives for its key."""
    missing = [(file, part) for file, part in parts.items() if not part.is_dir()]
    made = PairsResult(before=len(parts) - len(missing))
    if missing and (begin := getattr(source, "begin", None)):
        begin([part for part in parts.values() if part.is_dir()], tell)
    for number, (file, part) in enumerate(missing):
        tell("files", number, len(missing))
        try:
            made.add(_make_part(source, file, part))
        except UsageError as error:
            made.failures.append(LeftOut(str(file), str(error)))
    return made


def begin_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Record what is made; `UsageError` if the folder holds something else. A record of nothing made binds nobody."""
    path = out / NOTE
    holds = [one.name for one in out.iterdir() if not one.name.startswith(".")] if out.is_dir() else []
    if path.exists() and holds != [NOTE]:
        there = json_of(path)
        for name in {**there, **settings}:
            if there.get(name) != settings.get(name):
                difference = f"{name} {there.get(name)}, not {settings.get(name)}"
                raise UsageError(f"{out} holds pairs made with {difference}; name a new folder with --out")
        return
    if (holds and holds != [NOTE]) or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is there already and holds no {NOTE}; name a new folder with --out")
    make_folder(out)
    write_whole(path, lambda file: file.write(json.dumps(settings, indent=2).encode()))


def _make_part(source: PairSource, file: Path, part: Path) -> PairsResult:
    made = PairsResult()
    with whole_folder(part) as building, ExitStack() as stack:
        tables = {
            name: stack.enter_context(new_table(building / name, dict.fromkeys(columns, TEXT)))
            for name, columns in source.columns.items()
        }
        for one in source.read(file):
            if isinstance(one, PairRow):  # numbers become text, as labels are read
                texts = {name: None if value is None else str(value) for name, value in one.values.items()}
                tables[one.table](texts)
                made.rows[one.table] += 1
            else:
                made.left_out[one.reason] += 1
                made.examples.setdefault(one.reason, f"{file.name}: {one.place}")
    return made
