"""What the sources of pairs share: a folder for each of their files, put in place once it is whole.

This is not a pipeline of `eyespot.pipelines`: each file is read once, no model is asked, and its folder is the record
that it is done (docs/decisions/0009-owners.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eyespot.storage.atomic import make_folder, new_file, whole_folder, write_whole
from eyespot.storage.digests import text_digest
from eyespot.storage.json_files import json_of
from eyespot.types import NothingFound, Progress, UsageError

AT_ONCE = 4096  # rows that are written together
NOTE = "pairs.json"
PICTURES, CAPTIONS, TO_CAPTION = "pictures.parquet", "captions.parquet", "to_caption.parquet"
LEFT_OUT = "is left out by --without"


class PairRow(NamedTuple):
    """A row of one of a part's tables."""

    table: str
    values: Mapping[str, str | int | None]


class LeftOut(NamedTuple):
    """What gives no pair: where it stands in its file, and why."""

    place: str
    reason: str


def digest(names: Iterable[str]) -> str:
    """Sixteen hex digits that tell these names from others, in whatever order; nothing for none."""
    ordered = sorted(names)
    return text_digest(*ordered) if any(ordered) or len(ordered) > 1 else ""


class PairSource(Protocol):
    """A published set on disk, in files that are read one after the other."""

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

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Look over what has to be known before the first part; `done` are the folders of parts made before."""
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
    begin_folder(out, {"of": type(source).__module__.rpartition(".")[2], **source.settings})
    made = fill_parts(source, parts, tell)
    if not made.before and not made.rows:
        why = f"{source.files[0]} gives no pair: {next(iter(made.left_out), 'it is empty')}"
        raise NothingFound(made.failures[0].reason if made.failures else why)
    return made


def fill_parts(source: PairSource, parts: Mapping[Path, Path], tell: Progress) -> PairsResult:
    """The parts that are not there yet, each from what `source.read` gives for its key."""
    missing = [(file, part) for file, part in parts.items() if not part.is_dir()]
    made = PairsResult(before=len(parts) - len(missing))
    if missing:
        source.begin([part for part in parts.values() if part.is_dir()], tell)
    for number, (file, part) in enumerate(missing):
        tell("files", number, len(missing))
        try:
            made.add(_make_part(source, file, part))
        except UsageError as error:
            made.failures.append(LeftOut(str(file), str(error)))
    return made


def begin_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Note what is made; `UsageError` if the folder holds something else."""
    path = out / NOTE
    if not path.exists():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} is there already and holds no {NOTE}; name a new folder with --out")
        make_folder(out)
        write_whole(path, lambda file: file.write(json.dumps(settings, indent=2).encode()))
        return
    there = json_of(path)
    for name in {**there, **settings}:
        if there.get(name) != settings.get(name):
            difference = f"{name} {there.get(name)}, not {settings.get(name)}"
            raise UsageError(f"{out} holds pairs made with {difference}; name a new folder with --out")


def _make_part(source: PairSource, file: Path, part: Path) -> PairsResult:
    made = PairsResult()
    with whole_folder(part) as building, ExitStack() as stack:
        tables = {
            name: stack.enter_context(_Table(building / name, columns)) for name, columns in source.columns.items()
        }
        for one in source.read(file):
            if isinstance(one, PairRow):
                tables[one.table].add(one.values)
                made.rows[one.table] += 1
            else:
                made.left_out[one.reason] += 1
                made.examples.setdefault(one.reason, f"{file.name}: {one.place}")
    return made


class _Table:
    """A parquet table that grows by rows; its texts are text and its numbers text too, as labels are read."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        import pyarrow as pa

        self.path, self.schema = path, pa.schema([(name, pa.string()) for name in columns])
        self.waiting: list[Mapping[str, Any]] = []

    def __enter__(self) -> _Table:
        import pyarrow.parquet as pq

        self._stack = ExitStack()
        file = self._stack.enter_context(new_file(self.path))
        self._writer = self._stack.enter_context(pq.ParquetWriter(file, self.schema, compression="zstd"))
        return self

    def add(self, values: Mapping[str, Any]) -> None:
        self.waiting.append({name: None if value is None else str(value) for name, value in values.items()})
        if len(self.waiting) == AT_ONCE:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_pylist(self.waiting, schema=self.schema))
        self.waiting.clear()

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._write()
        self._stack.__exit__(*error)
