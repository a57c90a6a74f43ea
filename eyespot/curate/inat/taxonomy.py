"""Species of an export as species of a target list: by id, by name, and through renames, splits and merges.

An export's taxon is followed backwards through changes (it came from the list's species) or forwards (the list is
newer), never in both directions: that would confuse the parts of a split.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.inat.sources import RANKS, ObservationSource
from eyespot.curate.inat.tables import StepTables, Tables, quote_name, quoted, rejects
from eyespot.settings.build import InatSettings
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

KINDS = ("rename", "split", "merge")
_SAME = {"renamed": "rename", "swap": "rename", "merged": "merge"}
_OLD, _NEW = ("old", "old_id", "old id", "old_taxon"), ("new", "new_id", "new id", "new_taxon")
_NAME = ("name", "scientific_name", "scientificName", "species", "taxon_name")
_TAXON, _ID = ("taxon_id", "taxonID"), ("id", "category_id")


class TargetSpecies(NamedTuple):
    """A species of the list: its number in the collection, its name, and the other columns of the list."""

    id: int
    name: str
    taxon: str | None = None  # its id in the export, if the list knows
    ranks: Mapping[str, str] = {}
    common: str | None = None
    folder: str | None = None


@dataclass(frozen=True)
class Taxon:
    """A species of the export."""

    id: str
    name: str
    active: bool = True
    kingdom: str | None = None


@dataclass(frozen=True)
class Change:
    """One line of a mapping; old and new are ids of the export's taxa, or names."""

    old: str
    new: str
    kind: str


@dataclass(frozen=True)
class Route:
    """What the observations of a taxon count as: one target, or several of which nobody knows which it is."""

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
            return "its taxon counts as one of several"
        if any(self._is_homonym(place, self.taxa[id]) for id in self.ids.get(target.name, ())):
            return "the name of taxa in several kingdoms; give the list a column kingdom or taxon_id"
        nodes = [target.name, *([target.taxon] if target.taxon else []), *self.ids.get(target.name, ())]
        for change in (change for node in nodes for change in self.newer.get(node, ())):
            taken = [other for other in self._targets(change.new) if other != place]
            if taken:
                return f"{change.kind} into {change.new}, which counts as {self.targets[taken[0]].name}"
        return "no taxon of that name or id in the export"


TARGETS = "targets.json"
UNLISTED, ABOVE, HYBRID = "a taxon that is not in the export's list", "no species: a higher taxon", "a hybrid"
NOT_WANTED, SEVERAL = "not in the target taxonomy", "one of several target species (a split or merge)"


def align_observations(source: ObservationSource, settings: InatSettings, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its species' place in the list, and beside it `targets.json`, the list itself."""
    tables, rows = step.tables, step.rows("filtered")
    _resolve(source, tables, rows)
    import pyarrow as pa

    changes = read_changes(settings.mapping) if settings.mapping else []
    targets = read_targets(settings.targets) if settings.targets else _own_targets(tables)
    alignment = align(targets, _named_taxa(tables, targets, changes), changes)
    single = {id: route.targets[0] for id, route in alignment.routes.items() if len(route.targets) == 1}
    places: dict[str, list[Any]] = {"species": [*alignment.routes], "target": [*map(single.get, alignment.routes)]}
    tables.know("routes", places, {"target": pa.int32()})
    reason = (
        f"CASE WHEN e.why IS NOT NULL THEN e.why WHEN s.species IS NULL THEN {quoted(NOT_WANTED)} "
        f"WHEN s.target IS NULL THEN {quoted(SEVERAL)} END"
    )
    step.split(
        f"SELECT o.* EXCLUDE (taxon), s.target, {reason} AS reason FROM {rows} o "
        "JOIN resolved e USING (taxon) LEFT JOIN routes s USING (species)"
    )
    # For each place in the list its taxa and how they were matched; a taxon that may be several has several places
    ways: dict[int, dict[str, str]] = {}
    for id, route in alignment.routes.items():
        for place in route.targets:
            ways.setdefault(place, {})[id] = route.how
    ranks = _ranks_of_taxa(tables, single)
    fields = []
    for place, target in enumerate(targets):
        rest = {"taxa": ways.get(place, {}), "unmapped": alignment.unmapped.get(place)}
        fields.append({**target._asdict(), "ranks": {**ranks.get(place, {}), **target.ranks}, **rest})
    write_whole(step.folder / TARGETS, lambda file: file.write(json.dumps(fields, ensure_ascii=False).encode()))
    return {"targets": len(targets), "unmapped": len(alignment.unmapped), "unreadable": rejects(tables)}


# -- the export's taxa ------------------------------------------------------------------------------------------


def _resolve(source: ObservationSource, tables: Tables, rows: str) -> None:
    """Tables `taxa` as the source has them, and `resolved`: the species of each observed taxon, or why it has none."""
    tables.run(f"CREATE OR REPLACE TEMP TABLE taxa AS SELECT DISTINCT ON (taxon) * FROM {source.taxa} ORDER BY ALL")
    tables.run(f"CREATE OR REPLACE TEMP TABLE seen AS SELECT taxon, count(*) AS times FROM {rows} GROUP BY taxon")
    tables.run(
        "CREATE OR REPLACE TEMP TABLE above AS SELECT DISTINCT ON (s.taxon) s.taxon, a.taxon AS species "
        "FROM (SELECT taxon, unnest(string_split(ancestry, '/')) AS one FROM seen JOIN taxa USING (taxon) "
        "WHERE rank_level < 10) s "
        "JOIN taxa a ON a.taxon = s.one AND a.rank = 'species' ORDER BY ALL"
    )
    why = (
        f"CASE WHEN t.taxon IS NULL THEN {quoted(UNLISTED)} WHEN t.rank = 'species' OR u.species IS NOT NULL THEN NULL "
        f"WHEN t.rank LIKE '%hybrid%' THEN {quoted(HYBRID)} ELSE {quoted(ABOVE)} END"
    )
    tables.run(
        "CREATE OR REPLACE TEMP TABLE resolved AS SELECT s.taxon, s.times, "
        f"CASE WHEN t.rank = 'species' THEN t.taxon ELSE u.species END AS species, {why} AS why "
        "FROM seen s LEFT JOIN taxa t USING (taxon) LEFT JOIN above u USING (taxon)"
    )


def _own_targets(tables: Tables) -> list[TargetSpecies]:
    """Without a list: every active species with observations, by name."""
    rows = tables.rows(
        "SELECT DISTINCT ON (name) name, taxon FROM taxa WHERE active AND rank = 'species' AND taxon IN "
        "(SELECT species FROM resolved) ORDER BY name, taxon"
    )
    if not rows:
        raise UsageError("no observation is of an active species; give a list of species with --targets")
    return [TargetSpecies(number, name, taxon) for number, (name, taxon) in enumerate(rows)]


def _named_taxa(tables: Tables, targets: Sequence[TargetSpecies], changes: Sequence[Change]) -> list[Taxon]:
    keys = {key for target in targets for key in (target.name, target.taxon) if key}
    keys |= {end for change in changes for end in (change.old, change.new)}
    tables.know("keys", {"key": sorted(keys)})
    rows = tables.rows(
        "SELECT t.taxon, t.name, t.active, COALESCE(min(k.name), t.kingdom) FROM (SELECT * FROM taxa "
        "WHERE rank = 'species' AND (taxon IN (FROM keys) OR name IN (FROM keys))) t "
        "LEFT JOIN taxa k ON k.rank = 'kingdom' AND contains('/' || t.ancestry || '/', '/' || k.taxon || '/') "
        "GROUP BY t.taxon, t.name, t.active, t.kingdom ORDER BY t.taxon"
    )
    return [Taxon(*row) for row in rows]


def _ranks_of_taxa(tables: Tables, single: Mapping[str, int]) -> dict[int, dict[str, str]]:
    """The ranks of species by their place in the list, from the taxa that count as them alone."""
    tables.know("ways", {"taxon": [*single], "target": [*map(str, single.values())]})
    ranks = ", ".join(quoted(rank) for rank in RANKS)
    known: dict[int, dict[str, str]] = {}
    for place, rank, name in tables.rows(
        "SELECT target, a.rank, min(a.name) FROM (SELECT target, unnest(string_split(t.ancestry, '/')) AS one "
        f"FROM ways JOIN taxa t USING (taxon)) JOIN taxa a ON a.taxon = one "
        f"WHERE a.rank IN ({ranks}) GROUP BY target, a.rank"
    ):
        known.setdefault(int(place), {})[rank] = name
    minima = ", ".join(f"min({quote_name(rank)})" for rank in RANKS)
    for place, *names in tables.rows(f"SELECT target, {minima} FROM ways JOIN taxa USING (taxon) GROUP BY target"):
        own_ranks = {rank: name for rank, name in zip(RANKS, names, strict=True) if name}
        known[int(place)] = own_ranks | known.get(int(place), {})
    return known
