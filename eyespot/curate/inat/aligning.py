"""The step that gives each observation its species of the target list, or the reason why it has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eyespot.curate.inat.settings import Species
from eyespot.curate.inat.source import RANKS, ObservationSource
from eyespot.curate.inat.table_step import StepTables
from eyespot.curate.inat.tables import Tables, quote_name, quoted, rejects
from eyespot.curate.inat.taxonomy import (
    Alignment,
    Box,
    Change,
    TargetSpecies,
    Taxon,
    align,
    read_changes,
    read_ranges,
    read_targets,
)
from eyespot.storage.atomic import write_whole
from eyespot.types import UsageError

TARGETS = "targets.json"
UNLISTED, ABOVE, HYBRID = "a taxon that is not in the export's list", "no species: a higher taxon", "a hybrid"
NOT_WANTED, SEVERAL = "not in the target taxonomy", "one of several target species (a split or merge)"


def align_observations(source: ObservationSource, species: Species, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its species' place in the list, and beside it `targets.json`, the list itself."""
    tables, rows = step.tables, step.rows("filtered")
    _resolve(source, tables, rows)
    changes = read_changes(species.changes) if species.changes else []
    targets = read_targets(species.targets) if species.targets else _own_targets(tables)
    boxes = read_ranges(species.ranges) if species.ranges else []
    alignment = align(targets, _taxa(tables, targets, changes), changes)
    _write_routes(tables, alignment, boxes, targets)
    step.split(_aligned(rows))
    # For each place in the list its taxa and how they were matched; taxa that ranges decide on have several places
    ways: dict[int, dict[str, str]] = {}
    for id, route in alignment.routes.items():
        for place in route.targets:
            ways.setdefault(place, {})[id] = route.how + (" by range" if len(route.targets) > 1 else "")
    ranks = _ranks_of_taxa(tables, alignment)
    fields = []
    for place, target in enumerate(targets):
        rest = {"taxa": ways.get(place, {}), "unmapped": alignment.unmapped.get(place)}
        fields.append({**target._asdict(), "ranks": {**ranks.get(place, {}), **target.ranks}, **rest})
    write_whole(step.folder / TARGETS, lambda file: file.write(json.dumps(fields, ensure_ascii=False).encode()))
    return {"targets": len(targets), "unmapped": len(alignment.unmapped), "unreadable": rejects(tables)}


# -- the export's taxa ------------------------------------------------------------------------------------------


def _resolve(source: ObservationSource, tables: Tables, rows: str) -> None:
    """Tables `taxa` as the source has them, and `resolved`: the species of each observed taxon, or why it has none."""
    tables.run(f"CREATE OR REPLACE TEMP TABLE taxa AS SELECT DISTINCT ON (taxon) * FROM {source.taxa}")
    tables.run(f"CREATE OR REPLACE TEMP TABLE seen AS SELECT taxon, count(*) AS times FROM {rows} GROUP BY taxon")
    tables.run(
        "CREATE OR REPLACE TEMP TABLE above AS SELECT DISTINCT ON (s.taxon) s.taxon, a.taxon AS species "
        "FROM (SELECT taxon, unnest(string_split(ancestry, '/')) AS one FROM seen JOIN taxa USING (taxon) "
        "WHERE rank_level < 10) s "
        "JOIN taxa a ON a.taxon = s.one AND a.rank = 'species'"
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


def _taxa(tables: Tables, targets: Sequence[TargetSpecies], changes: Sequence[Change]) -> list[Taxon]:
    """The species of the export that the list or the mapping names."""
    keys = {key for target in targets for key in (target.name, target.taxon) if key}
    keys |= {end for change in changes for end in (change.old, change.new)}
    tables.know("keys", {"key": sorted(keys)})
    rows = tables.rows(
        "SELECT t.taxon, t.name, t.active, COALESCE(any_value(k.name), t.kingdom) FROM (SELECT * FROM taxa "
        "WHERE rank = 'species' AND (taxon IN (FROM keys) OR name IN (FROM keys))) t "
        "LEFT JOIN taxa k ON k.rank = 'kingdom' AND contains('/' || t.ancestry || '/', '/' || k.taxon || '/') "
        "GROUP BY t.taxon, t.name, t.active, t.kingdom ORDER BY t.taxon"
    )
    return [Taxon(*row) for row in rows]


# -- routes -----------------------------------------------------------------------------------------------------


def _write_routes(tables: Tables, alignment: Alignment, boxes: Sequence[Box], targets: Sequence[TargetSpecies]) -> None:
    """Tables `routes` (species, target, number of its targets) and `ranges` (target and its boxes)."""
    import pyarrow as pa

    places = {key: place for place, target in enumerate(targets) for key in (target.taxon, target.name) if key}
    unknown = next((box.species for box in boxes if box.species not in places), None)
    if unknown is not None:
        raise UsageError(f"the ranges name {unknown!r}, which is not a species of the target list; leave it out")
    pairs = [(id, route, place) for id, route in alignment.routes.items() for place in route.targets]
    routes: dict[str, list[Any]] = {
        "species": [id for id, _, _ in pairs],
        "target": [place for _, _, place in pairs],
        "ways": [len(route.targets) for _, route, _ in pairs],
    }
    tables.know("routes", routes, {"target": pa.int32(), "ways": pa.int32()})
    sides = {side: [getattr(box, side) for box in boxes] for side in ("west", "south", "east", "north")}
    kinds = {"target": pa.int32(), **dict.fromkeys(sides, pa.float64())}
    tables.know("ranges", {"target": [places[box.species] for box in boxes], **sides}, kinds)


def _aligned(rows: str) -> str:
    """Observations with their target: by their only route, or by the only range that contains them."""
    inside = (
        "o.latitude BETWEEN g.south AND g.north AND CASE WHEN g.west <= g.east THEN o.longitude BETWEEN g.west "
        "AND g.east ELSE o.longitude >= g.west OR o.longitude <= g.east END"
    )
    ranged = (
        f"SELECT o.row, min(g.target) AS target FROM {rows} o JOIN resolved USING (taxon) "
        f"JOIN routes r USING (species) JOIN ranges g ON g.target = r.target AND {inside} "
        "WHERE r.ways > 1 GROUP BY o.row HAVING count(DISTINCT g.target) = 1"
    )
    # the columns of one route, so that an observation never becomes two rows
    single = "SELECT species, any_value(target) AS target, any_value(ways) AS ways FROM routes GROUP BY species"
    target = "CASE WHEN s.ways = 1 THEN s.target ELSE n.target END"
    reason = (
        f"CASE WHEN e.why IS NOT NULL THEN e.why WHEN s.species IS NULL THEN {quoted(NOT_WANTED)} "
        f"WHEN {target} IS NULL THEN {quoted(SEVERAL)} END"
    )
    return (
        f"SELECT o.* EXCLUDE (taxon), {target} AS target, {reason} AS reason FROM {rows} o "
        f"JOIN resolved e USING (taxon) LEFT JOIN ({single}) s USING (species) LEFT JOIN ({ranged}) n USING (row)"
    )


# -- the list ---------------------------------------------------------------------------------------------------


def _ranks_of_taxa(tables: Tables, alignment: Alignment) -> dict[int, dict[str, str]]:
    """The ranks of species by their place in the list, from the taxa that count as them alone."""
    ways = [(id, str(route.targets[0])) for id, route in alignment.routes.items() if len(route.targets) == 1]
    tables.know("ways", {"taxon": [id for id, _ in ways], "target": [place for _, place in ways]})
    ranks = ", ".join(quoted(rank) for rank in RANKS)
    known: dict[int, dict[str, str]] = {}
    for place, rank, name in tables.rows(
        "SELECT target, a.rank, min(a.name) FROM (SELECT target, unnest(string_split(t.ancestry, '/')) AS one "
        f"FROM ways JOIN taxa t USING (taxon)) JOIN taxa a ON a.taxon = one "
        f"WHERE a.rank IN ({ranks}) GROUP BY target, a.rank"
    ):
        known.setdefault(int(place), {})[rank] = name
    own = ", ".join(f"min({quote_name(rank)})" for rank in RANKS)
    for place, *names in tables.rows(f"SELECT target, {own} FROM ways JOIN taxa USING (taxon) GROUP BY target"):
        own_ranks = {rank: name for rank, name in zip(RANKS, names, strict=True) if name}
        known[int(place)] = own_ranks | known.get(int(place), {})
    return known
