"""A recipe as its TOML file declares it: needs, systems and the command lines that make each system's report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

UNKNOWN = "not known"


@dataclass(frozen=True)
class NeededData:
    """Files that a table needs, at `place` (a pattern) below the work folder; None: the number of bytes is not known.

    `source` is what `eyespot download` takes; without one, `how` says how to get it by hand.
    """

    what: str
    place: str
    source: str = ""
    bytes: int | None = None
    licence: str = UNKNOWN
    how: str = ""
    required: bool = True


@dataclass(frozen=True)
class NeededWeights:
    """A model of the hub; `revision` is a commit, or what is known of it, and `id_known_from` who names the model."""

    hub: str
    revision: str = "not pinned: main, and the gallery records the commit"
    bytes: int | None = None
    how: str = ""
    id_known_from: str = "public code, and that the paper used it is not verified"


@dataclass(frozen=True)
class TableSystem:
    """A row of the table: its `method` as printed, and the values of its commands' placeholders.

    `stage` takes the row from a stage of the report of the system `of`: its first stage, the best possible order, or
    what chance gives. `source` says which of several printed tables it is a row of; empty: of all with its method.
    """

    method: str
    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    stage: str = ""
    of: str = ""
    source: str = ""


@dataclass(frozen=True)
class CommandTemplate:
    """A command line with `{placeholders}`; `each` is done for every system that has all of them.

    `makes` is a file that exists when it is done; `report` the folder that `eyespot eval --out` writes. A step without
    `sample` is left out of the miniature, one without `full` is of the miniature alone.
    """

    name: str
    run: str
    each: bool = False
    makes: str = ""
    report: str = ""
    sample: bool = True
    full: bool = True


class TableCommand(NamedTuple):
    """One line to run in the work folder: its id, the file that shows that it is done, and whose report it writes."""

    id: str
    line: str
    makes: str
    report: str
    system: str | None


@dataclass(frozen=True)
class TableRecipe:
    """What `tables/NAME.toml` says. `missing` has the printed methods that no step makes, with the reason."""

    name: str
    title: str
    benchmarks: Sequence[str]
    sources: Sequence[str]
    data: Sequence[NeededData]
    weights: Sequence[NeededWeights]
    systems: Sequence[TableSystem]
    steps: Sequence[CommandTemplate]
    values: Mapping[str, str]
    needs: Mapping[str, str]
    extras: Sequence[str]
    keys: Sequence[str]
    missing: Mapping[str, str]
    world: str
    sample_systems: Sequence[TableSystem]
    sample_values: Mapping[str, str]

    def rows(self, sample: bool) -> Sequence[TableSystem]:
        """The systems, or those of the miniature."""
        return self.sample_systems if sample else self.systems

    def commands(self, sample: bool) -> list[TableCommand]:
        """All lines in their order; each once, however many systems share it."""
        common = {**self.values, **(self.sample_values if sample else {})}
        lines = []
        for one in () if sample else self.data:
            if one.source:
                folder = one.place if one.source.startswith("hub:") else str(Path(one.place).parent)
                line = f"eyespot download '{one.source}' --out {folder}"
                lines.append(TableCommand(f"download {one.what}", line, one.place, "", None))
        for step in self.steps:
            if not (step.sample if sample else step.full):
                continue
            for system in self.rows(sample) if step.each else [None]:
                values = common if system is None else {**common, "name": system.name, **system.values}
                wanted = set(re.findall(r"\{(\w+)\}", step.run))
                if system is not None and (system.of or not wanted <= values.keys()):
                    continue
                line, makes, report = (_filled(text, values) for text in (step.run, step.makes, step.report))
                id = step.name if system is None else f"{step.name} {system.name}"
                lines.append(TableCommand(id, line, makes, report, None if system is None else system.name))
        first = {command.line: command for command in reversed(lines)}
        return [command for command in lines if first[command.line] is command]


def read_table(path: Path) -> TableRecipe:
    """The recipe in a file; `UsageError` says which key is wrong."""
    fields = toml_of(path)
    sample = fields.pop("sample", {})
    try:
        listed = {
            "data": [NeededData(**one) for one in fields.pop("data", [])],
            "weights": [NeededWeights(**one) for one in fields.pop("weights", [])],
            "systems": [_system(one) for one in fields.pop("systems", [])],
            "steps": [CommandTemplate(**one) for one in fields.pop("steps", [])],
            "sample_systems": [_system(one) for one in sample.get("systems", [])],
        }
        optional: dict[str, Any] = {"values": {}, "needs": {}, "extras": [], "keys": [], "missing": {}}
        more = {"world": sample.get("world", ""), "sample_values": sample.get("values", {})}
        return TableRecipe(path.stem, **{**optional, **fields, **listed, **more})
    except TypeError as error:
        raise UsageError(f"{path} is no recipe of a table ({error}); see docs/reproduce.md") from None


def _system(fields: Mapping[str, Any]) -> TableSystem:
    known = {name: fields[name] for name in ("method", "name", "stage", "of", "source") if name in fields}
    return TableSystem(**known, values={name: str(value) for name, value in fields.items() if name not in known})


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders; `UsageError` names one without a value."""
    try:
        return " ".join(text.format_map(values).split())
    except KeyError as error:
        raise UsageError(f"the recipe has no value for {error.args[0]!r} in: {text}") from None
