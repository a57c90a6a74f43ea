"""Species of an export as species of a target list: by id, by name, and through renames, splits and merges.

An export's taxon is followed backwards through changes (it came from the list's species) or forwards (the list is
newer), never in both directions: that would confuse the parts of a split.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.inat.source import RANKS
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

KINDS = ("rename", "split", "merge")
_SAME = {"renamed": "rename", "swap": "rename", "merged": "merge"}
_OLD, _NEW = ("old", "old_id", "old id", "old_taxon"), ("new", "new_id", "new id", "new_taxon")
_NAME = ("name", "scientific_name", "scientificName", "species", "taxon_name")
_TAXON, _ID = ("taxon_id", "taxonID"), ("id", "category_id")
_SIDES = ("west", "south", "east", "north")


class TargetSpecies(NamedTuple):
    """A species of the list: its number in the collection, its name, and the other columns of the list."""

    id: int
    name: str
    taxon: str | None = None  # its id in the export, if the list knows
    ranks: Mapping[str, str] = {}
    common: str | None = None
    folder: str | None = None


class Taxon(NamedTuple):
    """A species of the export."""

    id: str
    name: str
    active: bool = True
    kingdom: str | None = None


class Change(NamedTuple):
    """One line of a mapping; old and new are ids of the export's taxa, or names."""

    old: str
    new: str
    kind: str


class Box(NamedTuple):
    """A part of a species' range, in degrees; west above east crosses the antimeridian."""

    species: str
    west: float
    south: float
    east: float
    north: float


class Route(NamedTuple):
    """What the observations of a taxon count as: one target, or several among which a range decides."""

    targets: tuple[int, ...]  # places in the list
    how: str


@dataclass
class Alignment:
    """Routes by taxon, and why targets have none."""

    routes: dict[str, Route] = field(default_factory=dict)
    unmapped: dict[int, str] = field(default_factory=dict)  # by place in the list


# -- reading ----------------------------------------------------------------------------------------------------


def read_targets(path: Path) -> list[TargetSpecies]:
    """A list of species, csv, tsv, jsonl or parquet; `UsageError` for one without names or with a name twice.

    Columns: `name`, and if there are any `id`, `taxon_id`, `common_name`, `image_dir_name`, and ranks from kingdom to
    genus.
    """
    targets = []
    for row_number, (line, row) in enumerate(rows_of(path)):
        name = _first(row, _NAME)
        if name is None:
            refuse(path, f"line {line}", f"has no {_NAME[0]}; there are: {', '.join(name for name in row if name)}")
        number = _first(row, _ID) or str(row_number)
        if not number.isdecimal():
            refuse(path, f"line {line}", f"has the id {number!r}; write a whole number, or no column id")
        ranks = {rank: value for rank in RANKS if (value := _first(row, (rank,))) is not None}
        common, folder = _first(row, ("common_name",)), _first(row, ("image_dir_name",))
        targets.append(TargetSpecies(int(number), name, _first(row, _TAXON), ranks, common, folder))
    names = [" of ".join(filter(None, (target.name, target.ranks.get("kingdom")))) for target in targets]
    for what, values in (("name", names), ("id", [str(target.id) for target in targets])):
        value, times = next(iter(Counter(values).most_common(1)), ("", 0))
        if times > 1:
            raise UsageError(f"{path} has the {what} {value} {times} times; keep one of them")
    if not targets:
        raise UsageError(f"{path} lists no species; write a column `name` and a line for each")
    return targets


def read_changes(path: Path) -> list[Change]:
    """A mapping of taxa: columns old, new, kind (rename, split, merge); `UsageError` names a line that is not one."""
    changes = []
    for line, row in rows_of(path):
        old, new, kind = _first(row, _OLD), _first(row, _NEW), (_first(row, ("kind",)) or "").lower()
        kind = _SAME.get(kind, kind)
        if old is None or new is None or kind not in KINDS:
            refuse(path, f"line {line}", f"is not a change; expected old, new and a kind of {', '.join(KINDS)}")
        changes.append(Change(old, new, kind))
    return changes


def read_ranges(path: Path) -> list[Box]:
    """Ranges as boxes: columns species (name or id), west, south, east, north; `UsageError` for other lines."""
    boxes = []
    for line, row in rows_of(path):
        species = _first(row, ("species", *_NAME, *_TAXON))
        try:
            west, south, east, north = (float(row[side]) for side in _SIDES)
        except (KeyError, TypeError, ValueError):
            west = south = east = north = math.nan
        on_earth = abs(west) <= 180 and abs(east) <= 180 and -90 <= south <= north <= 90
        if species is None or not on_earth:
            refuse(path, f"line {line}", f"is not a range; expected species, {', '.join(_SIDES)} in degrees")
        boxes.append(Box(species, west, south, east, north))
    return boxes


def _first(row: Mapping[str, Any], names: Iterable[str]) -> str | None:
    lowered = {str(name).casefold(): value for name, value in row.items()}
    values = (lowered.get(name.casefold()) for name in names)
    return next((" ".join(str(value).split()) for value in values if value is not None and str(value).strip()), None)


# -- aligning ---------------------------------------------------------------------------------------------------


def align(targets: Sequence[TargetSpecies], taxa: Sequence[Taxon], changes: Sequence[Change] = ()) -> Alignment:
    """The route of each taxon, and the targets without a taxon, with the reason."""
    ways = _Ways(targets, taxa, changes)
    routes = {taxon.id: route for taxon in taxa if (route := ways.route(taxon)) is not None}
    reached = {route.targets[0] for route in routes.values() if len(route.targets) == 1}
    unreached = (place for place in range(len(targets)) if place not in reached)
    return Alignment(routes, {place: ways.why_unmapped(place, routes) for place in unreached})


class _Ways:
    """The targets that names, ids and changes lead to, as places in the list."""

    def __init__(self, targets: Sequence[TargetSpecies], taxa: Sequence[Taxon], changes: Sequence[Change]) -> None:
        self.targets = targets
        self.by_taxon = {target.taxon: place for place, target in enumerate(targets) if target.taxon}
        self.by_name: dict[str, list[int]] = defaultdict(list)
        for place, target in enumerate(targets):
            self.by_name[target.name].append(place)
        self.taxa = {taxon.id: taxon for taxon in taxa}
        self.ids: dict[str, list[str]] = defaultdict(list)
        for taxon in taxa:
            self.ids[taxon.name].append(taxon.id)
        self.older: dict[str, list[Change]] = defaultdict(list)
        self.newer: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            self.older[change.new].append(change)
            self.newer[change.old].append(change)

    def route(self, taxon: Taxon) -> Route | None:
        """The route of a taxon, or None."""
        if taxon.id in self.by_taxon:
            return Route((self.by_taxon[taxon.id],), "same id")
        named = self.of_name(taxon)
        forward = self.followed(taxon, self.newer, "new")
        if named is None:
            ends = {**self.followed(taxon, self.older, "old"), **forward}
            return Route(tuple(sorted(ends)), ", ".join(sorted(set(ends.values())))) if ends else None
        if taxon.active:
            return Route((named,), "same name")
        # A species that was split is often a part that keeps the name
        places = {named, *(place for place, kind in forward.items() if kind == "split")}
        return Route(tuple(sorted(places)), "split" if len(places) > 1 else "same name, inactive")

    def of_name(self, taxon: Taxon) -> int | None:
        """The target of the same name and kingdom; None for none, and for a name that means several taxa."""
        places = []
        for place in self.by_name.get(taxon.name, ()):
            kingdom = self.targets[place].ranks.get("kingdom")
            if kingdom is None or taxon.kingdom is None or kingdom == taxon.kingdom:
                places.append(place)
        if len(places) != 1 or self._is_homonym(places[0], taxon):
            return None
        return places[0]

    def _is_homonym(self, place: int, taxon: Taxon) -> bool:
        """Whether several kingdoms have this name and the list does not say which it means."""
        if self.targets[place].ranks.get("kingdom") is not None:
            return False
        kingdoms = {self.taxa[id].kingdom for id in self.ids[taxon.name] if self.taxa[id].active}
        return len(kingdoms - {None}) > 1

    def followed(self, taxon: Taxon, changes: Mapping[str, Sequence[Change]], side: str) -> dict[int, str]:
        """Targets that changes lead to in one direction, each with the kind of the first change on the way."""
        reached: dict[int, str] = {}
        waiting = [(taxon.id, ""), (taxon.name, "")]
        seen = {taxon.id, taxon.name}
        while waiting:
            node, kind = waiting.pop()
            for change in changes.get(node, ()):
                end, first = getattr(change, side), kind or change.kind
                ends = self._targets(end)
                reached.update(dict.fromkeys(ends, first))
                if not ends:  # not a target: follow the changes of its id and name
                    names = [self.taxa[end].name] if end in self.taxa else self.ids.get(end, [])
                    fresh = [alias for alias in (end, *names) if alias not in seen]
                    seen.update(fresh)
                    waiting += [(alias, first) for alias in fresh]
        return reached

    def _targets(self, node: str) -> list[int]:
        """The targets that an id or name of a mapping means."""
        if node in self.by_taxon:
            return [self.by_taxon[node]]
        if node in self.taxa:
            named = self.of_name(self.taxa[node])
            return [] if named is None else [named]
        places = self.by_name.get(node, [])
        return places if len(places) == 1 else []

    def why_unmapped(self, place: int, routes: Mapping[str, Route]) -> str:
        """Why a target has no taxon of its own."""
        target = self.targets[place]
        if any(place in route.targets for route in routes.values()):
            return "its taxon counts as one of several; ranges would tell"
        if any(self._is_homonym(place, self.taxa[id]) for id in self.ids.get(target.name, ())):
            return "the name of taxa in several kingdoms; give the list a column kingdom or taxon_id"
        nodes = [target.name, *([target.taxon] if target.taxon else []), *self.ids.get(target.name, ())]
        for change in (change for node in nodes for change in self.newer.get(node, ())):
            taken = [other for other in self._targets(change.new) if other != place]
            if taken:
                return f"{change.kind} into {change.new}, which counts as {self.targets[taken[0]].name}"
        return "no taxon of that name or id in the export"
