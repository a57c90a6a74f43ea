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
from eyespot.storage.files import write_whole
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
    found = align(targets, _taxa(tables, targets, changes), changes)
    _know_routes(tables, found, _places(boxes, targets))
    step.split(_aligned(rows))
    listed = _with_ranks(tables, targets, found)
    # Of each place in the list its taxa, and how they came to it; taxa that a range must tell stand with several
    ways: dict[int, dict[str, str]] = {}
    for id, route in found.routes.items():
        for target in route.targets:
            ways.setdefault(target, {})[id] = route.how + (" by range" if len(route.targets) > 1 else "")
    fields = [_target_fields(target, ways.get(at, {}), found.unmapped.get(at)) for at, target in enumerate(listed)]
    write_whole(step.folder / TARGETS, lambda file: file.write(json.dumps(fields, ensure_ascii=False).encode()))
    return {"targets": len(targets), "unmapped": len(found.unmapped), "unreadable": rejects(tables)}


# -- the export's taxa ------------------------------------------------------------------------------------------


def _resolve(source: ObservationSource, tables: Tables, rows: str) -> None:
    """`taxa` as the source has them, and `resolved`: of each taxon that was seen its species, or why it has none."""
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
    """Without a list: every active species that was seen, by name."""
    rows = tables.rows(
        "SELECT DISTINCT ON (name) name, taxon FROM taxa WHERE active AND rank = 'species' AND taxon IN "
        "(SELECT species FROM resolved) ORDER BY name, taxon"
    )
    if not rows:
        raise UsageError("no observation is of an active species; give a list of species with --targets")
    return [TargetSpecies(at, name, taxon) for at, (name, taxon) in enumerate(rows)]


def _taxa(tables: Tables, targets: Sequence[TargetSpecies], changes: Sequence[Change]) -> list[Taxon]:
    """The species of the export that the list or the mapping names, and those that were seen of them."""
    named_so = {one.name for one in targets} | {end for change in changes for end in (change.old, change.new)}
    asked = sorted(named_so | {one.taxon for one in targets if one.taxon})
    tables.know("asked", {"asked": asked})
    rows = tables.rows(
        "SELECT t.taxon, t.name, t.active, COALESCE(any_value(k.name), t.kingdom) FROM (SELECT * FROM taxa "
        "WHERE rank = 'species' AND (taxon IN (FROM asked) OR name IN (FROM asked))) t "
        "LEFT JOIN taxa k ON k.rank = 'kingdom' AND contains('/' || t.ancestry || '/', '/' || k.taxon || '/') "
        "GROUP BY t.taxon, t.name, t.active, t.kingdom ORDER BY t.taxon"
    )
    return [Taxon(*row) for row in rows]


# -- routes -----------------------------------------------------------------------------------------------------


def _places(boxes: Sequence[Box], targets: Sequence[TargetSpecies]) -> list[tuple[int, Box]]:
    places = {key: at for at, one in enumerate(targets) for key in (one.taxon, one.name) if key}
    unknown = next((box.species for box in boxes if box.species not in places), None)
    if unknown is not None:
        raise UsageError(f"the ranges name {unknown!r}, which is no species of the target list; leave it out")
    return [(places[box.species], box) for box in boxes]


def _know_routes(tables: Tables, found: Alignment, places: Sequence[tuple[int, Box]]) -> None:
    """Tables `routes` (species, target, of how many) and `ranges` (target and its boxes)."""
    import pyarrow as pa

    routes = [(id, target, len(route.targets)) for id, route in found.routes.items() for target in route.targets]
    columns = dict(
        zip(("species", "target", "ways"), zip(*routes, strict=True) if routes else ((), (), ()), strict=True)
    )
    tables.know("routes", columns, {"target": pa.int32(), "ways": pa.int32()})
    sides = {side: [getattr(box, side) for _, box in places] for side in ("west", "south", "east", "north")}
    kinds = {"target": pa.int32(), **dict.fromkeys(sides, pa.float64())}
    tables.know("ranges", {"target": [target for target, _ in places], **sides}, kinds)


def _aligned(rows: str) -> str:
    """Observations with their target: by the one route there is, or the one range that holds them."""
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


def _with_ranks(tables: Tables, targets: Sequence[TargetSpecies], found: Alignment) -> list[TargetSpecies]:
    """The list with the ranks that it does not tell, from the taxa that count as its species."""
    ways = [(id, route.targets[0]) for id, route in found.routes.items() if len(route.targets) == 1]
    tables.know("ways", {"taxon": [id for id, _ in ways], "target": [str(target) for _, target in ways]})
    ranks = ", ".join(quoted(rank) for rank in RANKS)
    known: dict[int, dict[str, str]] = {}
    for target, rank, name in tables.rows(
        "SELECT target, a.rank, min(a.name) FROM (SELECT target, unnest(string_split(t.ancestry, '/')) AS one "
        f"FROM ways JOIN taxa t USING (taxon)) JOIN taxa a ON a.taxon = one "
        f"WHERE a.rank IN ({ranks}) GROUP BY target, a.rank"
    ):
        known.setdefault(int(target), {})[rank] = name
    own = ", ".join(f"min({quote_name(rank)})" for rank in RANKS)
    for target, *names in tables.rows(f"SELECT target, {own} FROM ways JOIN taxa USING (taxon) GROUP BY target"):
        told = {rank: name for rank, name in zip(RANKS, names, strict=True) if name}
        known[int(target)] = told | known.get(int(target), {})
    return [one._replace(ranks={**known.get(at, {}), **one.ranks}) for at, one in enumerate(targets)]


def _target_fields(target: TargetSpecies, ways: Mapping[str, str], why: str | None) -> dict[str, Any]:
    """A species of the list as `targets.json` has it: with the taxa that count as it and how, or why none does."""
    return {**target._asdict(), "ranks": dict(target.ranks), "taxa": dict(ways), "unmapped": why}
