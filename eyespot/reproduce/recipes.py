"""A recipe as its TOML file declares it: needs, systems and the command lines that make each system's report."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.extras import EXTRAS, install_line
from eyespot.models.hub import cached_commit
from eyespot.storage.text_files import holds_something, refuse, toml_of
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
    `after` is a system whose report its lines read. `by_hand` says what somebody has to provide first; such a system is
    run where it is asked for by its name.
    """

    method: str
    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    stage: str = ""
    of: str = ""
    source: str = ""
    after: str = ""
    by_hand: str = ""


@dataclass(frozen=True)
class CommandTemplate:
    """A command line with `{placeholders}`; `each` is done for every system that has all of them, and `having`.

    `makes` is a file that exists when it is done; `report` the folder that `eyespot eval --out` writes. A step without
    `sample` is left out of the miniature, one without `full` is of the miniature alone.
    """

    name: str
    run: str
    each: bool = False
    having: str = ""
    makes: str = ""
    report: str = ""
    sample: bool = True
    full: bool = True


class TableCommand(NamedTuple):
    """One line to run in the work folder: its id, the file that shows that it is done, the report that it writes, and
    the systems that it is for; none: the whole table."""

    id: str
    line: str
    makes: str
    report: str
    systems: tuple[str, ...] = ()


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

    def rows(self, sample: bool, only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[TableSystem]:
        """The systems (of the miniature, with `sample`): all but those by hand, or `only` these and what they read.

        Systems are called by their names or their methods, in any case. Raises `UsageError` for what none is called, or
        if nothing is left.
        """
        systems = {one.name: one for one in (self.sample_systems if sample else self.systems)}
        wanted, left_out = self._called(only, systems), self._called(skip, systems)
        wanted = wanted or {name for name, one in systems.items() if not one.by_hand}
        if left_out and wanted <= left_out:
            raise UsageError(f"no row of {self.name} is left; skip fewer of: {', '.join(systems)}")
        wanted |= {other for name in wanted for other in (systems[name].of, systems[name].after)}
        return [one for name, one in systems.items() if name in wanted and name not in left_out]

    def _called(self, given: Sequence[str], systems: Mapping[str, TableSystem]) -> set[str]:
        """The names of the systems that are called so; `UsageError` for what none is called."""
        called: dict[str, list[str]] = {}
        for name, one in systems.items():
            for word in {name.casefold(), one.method.casefold()}:
                called.setdefault(word, []).append(name)
        if unknown := [word for word in given if word.casefold() not in called]:
            near = get_close_matches(unknown[0].casefold(), called, 1)
            guess = f"did you mean {called[near[0]][0]}? " if near else ""
            raise UsageError(f"{self.name} has no system {unknown[0]!r}; {guess}there are: {', '.join(systems)}")
        return {name for word in given for name in called[word.casefold()]}

    def commands(self, sample: bool, only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[TableCommand]:
        """All lines in their order; each once, however many systems share it. `only` and `skip` as for `rows`."""
        common, rows = {**self.values, **(self.sample_values if sample else {})}, self.rows(sample, only, skip)
        lines: dict[str, TableCommand] = {}
        for one in () if sample else self.data:
            if one.source:
                folder = one.place if one.source.startswith("hub:") else str(Path(one.place).parent)
                line = f"eyespot download '{one.source}' --out {folder}"
                lines[line] = TableCommand(f"download {one.what}", line, one.place, "")
        for step in self.steps:
            wanted = {*re.findall(r"\{(\w+)\}", step.run), *([step.having] if step.having else ())}
            for system in (rows if step.each else [None]) if (step.sample if sample else step.full) else ():
                values = common if system is None else {**common, "name": system.name, **system.values}
                if system is not None and (system.of or not wanted <= values.keys()):
                    continue
                line, makes, report = (_filled(text, values) for text in (step.run, step.makes, step.report))
                names = () if system is None else (system.name,)
                id = " ".join((step.name, *names))
                known = lines.setdefault(line, TableCommand(id, line, makes, report))
                lines[line] = known._replace(systems=(*known.systems, *names))
        return [*lines.values()]

    def every_command(self, sample: bool) -> list[TableCommand]:
        """The lines of all systems, those by hand among them."""
        return self.commands(sample, [one.name for one in (self.sample_systems if sample else self.systems)])


def read_table(path: Path) -> TableRecipe:
    """The recipe in a file; `UsageError` says which key is wrong, or which lines write one folder."""
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
        recipe = TableRecipe(path.stem, **{**optional, **fields, **listed, **more})
    except TypeError as error:
        raise UsageError(f"{path} is not a recipe of a table ({error}); see docs/research/reproduce.md") from None
    for of_sample in (False, True):
        _refuse_shared_places(path, recipe.every_command(of_sample))
    return recipe


def _refuse_shared_places(path: Path, commands: Iterable[TableCommand]) -> None:
    """`UsageError` where two lines write one report or one folder: the second destroys what the first made."""
    writers: dict[str, TableCommand] = {}
    for command in commands:
        words = shlex.split(command.line)
        out = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--out" and words[1] != "download"]
        for place in {command.makes, command.report, *out} - {""}:
            if (other := writers.setdefault(place, command)) is not command:
                refuse(path, f"step {command.id}", f"writes {place}, as step {other.id} does; give each its own")


def _system(fields: Mapping[str, Any]) -> TableSystem:
    names = ("method", "name", "stage", "of", "source", "after", "by_hand")
    known = {name: fields[name] for name in names if name in fields}
    return TableSystem(**known, values={name: str(value) for name, value in fields.items() if name not in known})


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders; `UsageError` names one without a value."""
    try:
        return " ".join(text.format_map(values).split())
    except KeyError as error:
        raise UsageError(f"the recipe has no value for {error.args[0]!r} in: {text}") from None


# -- what of its needs is here: files, weights in the hub's cache, packages, keys, room; no network --------------------


@dataclass(frozen=True, slots=True)
class Presence:
    """One need: `here` or not, what is known of it, and the way to get it; `stops` if nothing can be run without it."""

    kind: str  # data, weights, extra, key, disk
    what: str
    here: bool
    about: str
    way: str = ""
    stops: bool = False


def presences(recipe: TableRecipe, work: Path) -> list[Presence]:
    """Every need of a table, with whether it is here."""
    found, coming = [], 0
    for data in recipe.data:
        here = any(map(holds_something, work.glob(data.place)))
        coming += 0 if here or not data.source else data.bytes or 0  # what is here, and of unknown size, does not count
        way = f"eyespot reproduce {recipe.name} downloads it" if data.source else data.how
        about = f"{data.place}, {size(data.bytes)}, licence: {data.licence}" + ("" if data.required else ", optional")
        stops = not here and data.required and not data.source
        found.append(Presence("data", data.what, here, about, way, stops))
    for command in recipe.commands(sample=False):
        program = command.line.split()[0]
        if program != "eyespot" and "://" in command.line:  # which another program fetches, as git does
            here, lacks = (work / command.makes).exists(), shutil.which(program) is None
            way = f"{f'install {program}; then ' * lacks}eyespot reproduce {recipe.name} runs: {command.line}"
            about = f"{command.makes}, {size(None)}, by {program}"
            found.append(Presence("data", command.id, here, about, way, stops=lacks and not here))
    for one in recipe.weights:
        commit = cached_commit(one.hub)
        about = f"{size(one.bytes)}{f' ({one.how})' if one.how else ''}, revision {commit or one.revision}; "
        about += f"the id is known from {one.id_known_from}"
        found.append(Presence("weights", one.hub, commit is not None, about, "fetched from the hub at its first use"))
    for extra in recipe.extras:
        packages = [name for name, brings in EXTRAS.items() if brings == extra and name != "torchvision"]
        here = all(find_spec(name) is not None for name in packages)
        found.append(Presence("extra", f"[{extra}]", here, ", ".join(packages), install_line(extra), stops=not here))
    for key in recipe.keys:
        found.append(Presence("key", key, bool(os.environ.get(key)), "a key of the API", f"export {key}=…"))
    near = next(folder for folder in (work, *work.absolute().parents) if folder.exists())
    free = shutil.disk_usage(near).free
    about = f"{size(coming)} of known size to come, {size(free)} free"
    way = "choose another place with --work"
    return [*found, Presence("disk", str(near), coming <= free, about, way, stops=coming > free)]


def size(count: int | None) -> str:
    """Bytes for people; "not known" for None."""
    if count is None:
        return UNKNOWN
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:,} bytes"
