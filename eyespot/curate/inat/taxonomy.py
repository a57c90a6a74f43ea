"""Species of an export as species of a target list: by id, by name, and through renames, splits and merges.

An export's taxon is followed backwards through changes (it came out of the list's species) and forwards (the list is
the newer one), never to and fro: that would take one part of a split for the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.inat.source import RANKS
from eyespot.storage.files import refuse, rows_of
from eyespot.types import UsageError

KINDS = ("rename", "split", "merge")
_SAME = {"renamed": "rename", "swap": "rename", "merged": "merge"}
_OLD, _NEW = ("old", "old_id", "old id", "old_taxon"), ("new", "new_id", "new id", "new_taxon")
_NAME = ("name", "scientific_name", "scientificName", "species", "taxon_name")
_TAXON, _ID = ("taxon_id", "taxonID"), ("id", "category_id")
_SIDES = ("west", "south", "east", "north")


class TargetSpecies(NamedTuple):
    """A species of the list: its number in the collection, name, and what the list tells of it."""

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
    """What the observations of a taxon count as: one target, or several of which a range must tell."""

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
    found = []
    for at, (line, row) in enumerate(rows_of(path)):
        name = _first(row, _NAME)
        if name is None:
            refuse(path, f"line {line}", f"has no {_NAME[0]}; there are: {', '.join(name for name in row if name)}")
        number = _first(row, _ID) or str(at)
        if not number.isdecimal():
            refuse(path, f"line {line}", f"has the id {number!r}; write a whole number, or no column id")
        ranks = {rank: told for rank in RANKS if (told := _first(row, (rank,))) is not None}
        common, folder = _first(row, ("common_name",)), _first(row, ("image_dir_name",))
        target = TargetSpecies(int(number), name, _first(row, _TAXON), ranks, common, folder)
        found.append(target)
    _refuse_twice(path, "name", [_homonym(one) for one in found])
    _refuse_twice(path, "id", [str(one.id) for one in found])
    if not found:
        raise UsageError(f"{path} lists no species; write a column `name` and a line for each")
    return found


def _refuse_twice(path: Path, what: str, values: Sequence[str]) -> None:
    value, times = next(iter(Counter(values).most_common(1)), ("", 0))
    if times > 1:
        raise UsageError(f"{path} has the {what} {value} {times} times; keep one of them")


def _homonym(target: TargetSpecies) -> str:
    return " of ".join(part for part in (target.name, target.ranks.get("kingdom")) if part)


def read_changes(path: Path) -> list[Change]:
    """A mapping of taxa: columns old, new, kind (rename, split, merge); `UsageError` names a line that is none."""
    found = []
    for line, row in rows_of(path):
        old, new, kind = _first(row, _OLD), _first(row, _NEW), (_first(row, ("kind",)) or "").lower()
        kind = _SAME.get(kind, kind)
        if old is None or new is None or kind not in KINDS:
            refuse(path, f"line {line}", f"is no change; expected old, new and a kind of {', '.join(KINDS)}")
        found.append(Change(old, new, kind))
    return found


def read_ranges(path: Path) -> list[Box]:
    """Ranges as boxes: columns species (name or id), west, south, east, north; `UsageError` for what is none."""
    found = []
    for line, row in rows_of(path):
        species = _first(row, ("species", *_NAME, *_TAXON))
        try:
            sides = [float(row[side]) for side in _SIDES]
        except (KeyError, TypeError, ValueError):
            sides = []
        if species is None or not sides or not _on_earth(sides):
            refuse(path, f"line {line}", f"is no range; expected species, {', '.join(_SIDES)} in degrees")
        found.append(Box(species, *sides))
    return found


def _on_earth(sides: Sequence[float]) -> bool:
    west, south, east, north = sides
    return abs(west) <= 180 and abs(east) <= 180 and -90 <= south <= north <= 90


def _first(row: Mapping[str, Any], names: Iterable[str]) -> str | None:
    lowered = {str(name).casefold(): value for name, value in row.items()}
    told = (lowered.get(name.casefold()) for name in names)
    return next((" ".join(str(value).split()) for value in told if value is not None and str(value).strip()), None)


# -- aligning ---------------------------------------------------------------------------------------------------


def align(targets: Sequence[TargetSpecies], taxa: Sequence[Taxon], changes: Sequence[Change] = ()) -> Alignment:
    """What each taxon counts as, and which targets are left without one, with the reason."""
    ways = _Ways(targets, taxa, changes)
    found = Alignment()
    for taxon in taxa:
        if (route := ways.route(taxon)) is not None:
            found.routes[taxon.id] = route
    reached = {route.targets[0] for route in found.routes.values() if len(route.targets) == 1}
    found.unmapped = {at: ways.why_unmapped(at, found.routes) for at, _ in enumerate(targets) if at not in reached}
    return found


class _Ways:
    """Where names, ids and changes lead."""

    def __init__(self, targets: Sequence[TargetSpecies], taxa: Sequence[Taxon], changes: Sequence[Change]) -> None:
        self.targets = targets
        self.by_taxon = {one.taxon: at for at, one in enumerate(targets) if one.taxon}
        self.by_name: dict[str, list[int]] = _grouped((one.name, at) for at, one in enumerate(targets))
        self.taxa = {taxon.id: taxon for taxon in taxa}
        self.ids = _grouped((taxon.name, taxon.id) for taxon in taxa)
        self.older = _grouped((change.new, change) for change in changes)
        self.newer = _grouped((change.old, change) for change in changes)

    def route(self, taxon: Taxon) -> Route | None:
        """The way of one taxon, or None."""
        if taxon.id in self.by_taxon:
            return Route((self.by_taxon[taxon.id],), "same id")
        named = self.of_name(taxon)
        if named is not None:
            ends = {named, *self.parts(taxon)}
            how = "split" if len(ends) > 1 else "same name" if taxon.active else "same name, inactive"
            return Route(tuple(sorted(ends)), how)
        found = {**self.followed(taxon, self.older, "old"), **self.followed(taxon, self.newer, "new")}
        kinds = ", ".join(sorted(set(found.values())))
        return Route(tuple(sorted(found)), kinds) if found else None

    def parts(self, taxon: Taxon) -> list[int]:
        """Targets that an inactive taxon was split into: one of them usually keeps its name, and is only a part."""
        if taxon.active:
            return []
        return [at for at, kind in self.followed(taxon, self.newer, "new").items() if kind == "split"]

    def of_name(self, taxon: Taxon) -> int | None:
        """The target of the same name and kingdom; None for none, and where a name of several taxa cannot be told."""
        there = []
        for at in self.by_name.get(taxon.name, ()):
            told = self.targets[at].ranks.get("kingdom")
            same_kingdom = told is None or taxon.kingdom is None or told == taxon.kingdom
            if same_kingdom:
                there.append(at)
        if len(there) != 1 or self._is_homonym(there[0], taxon):
            return None
        return there[0]

    def _is_homonym(self, at: int, taxon: Taxon) -> bool:
        """Whether several kingdoms have this name and the list does not say which it means."""
        if self.targets[at].ranks.get("kingdom") is not None:
            return False
        kingdoms = {self.taxa[id].kingdom for id in self.ids[taxon.name] if self.taxa[id].active}
        return len(kingdoms - {None}) > 1

    def followed(self, taxon: Taxon, changes: Mapping[str, Sequence[Change]], side: str) -> dict[int, str]:
        """Targets that changes lead to in one direction, each with the kind of the first change on the way."""
        found: dict[int, str] = {}
        open_ = [(node, "") for node in (taxon.id, taxon.name)]
        seen = {taxon.id, taxon.name}
        while open_:
            node, kind = open_.pop()
            for change in changes.get(node, ()):
                end, first = getattr(change, side), kind or change.kind
                reached = self._targets(end)
                found.update(dict.fromkeys(reached, first))
                if reached:
                    further = []
                else:
                    aliases_taxon = self.taxa.get(end)
                    aliases = [end, aliases_taxon.name] if aliases_taxon is not None else [end, *self.ids.get(end, ())]
                    further = [other for other in aliases if other not in seen]
                seen.update(further)
                open_ += [(other, first) for other in further]
        return found

    def _targets(self, node: str) -> list[int]:
        """The targets that an id or name of a mapping means."""
        if node in self.by_taxon:
            return [self.by_taxon[node]]
        taxon = self.taxa.get(node)
        if taxon is not None:
            named = self.of_name(taxon)
            return [] if named is None else [named]
        named_so = self.by_name.get(node, [])
        return named_so if len(named_so) == 1 else []

    def why_unmapped(self, at: int, routes: Mapping[str, Route]) -> str:
        """Why a target has no taxon of its own."""
        target = self.targets[at]
        if any(at in route.targets for route in routes.values()):
            return "its taxon counts as one of several; ranges would tell"
        if any(self._is_homonym(at, self.taxa[id]) for id in self.ids.get(target.name, ())):
            return "the name of taxa in several kingdoms; give the list a column kingdom or taxon_id"
        nodes = [target.name, *([target.taxon] if target.taxon else []), *self.ids.get(target.name, ())]
        for change in (change for node in nodes for change in self.newer.get(node, ())):
            taken = [other for other in self._targets(change.new) if other != at]
            if taken:
                return f"{change.kind} into {change.new}, which counts as {self.targets[taken[0]].name}"
        return "no taxon of that name or id in the export"


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
