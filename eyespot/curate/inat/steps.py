"""The steps from observations to a drawn list, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.curate.inat.licences import ObservationFilter, checked, why_not, years_of
from eyespot.curate.inat.sampling import DrawResult, SpeciesObservations, draw, equal_cells, groups, lots_of, spread
from eyespot.curate.inat.sources import ObservationSource
from eyespot.curate.inat.tables import (
    DROPPED_ROWS,
    KEPT_ROWS,
    StepTables,
    Tables,
    Work,
    know_days,
    parquet,
    quoted,
    rejects,
    table_work,
)
from eyespot.curate.inat.taxonomy import align_observations
from eyespot.pipelines import Step
from eyespot.settings.build import InatSettings
from eyespot.storage.atomic import new_file

READ, FILTERED, ALIGNED, PHOTOGRAPHED = "read", "filtered", "aligned", "photographed"
GROUPED, DRAWN, LISTED = "grouped", "drawn", "listed"
PRIMARY = "primary.parquet"
_LAST_PART = "regexp_extract(p.file, '[^/]*$')"
# a photo's id, or a digest of an id that is not a file name, with the ending of its file
_NAME_OF_ITS_OWN = (
    "CASE WHEN regexp_full_match(p.photo, '[A-Za-z0-9][\\w-]{0,79}') THEN p.photo ELSE md5(p.photo) END "
    "|| COALESCE(NULLIF(regexp_extract(p.file, '\\.[A-Za-z0-9]{1,5}$'), ''), '.jpg')"
)
_ABOUT = {
    FILTERED: "Observations dated in the wanted years, with a position on the Earth, of the wanted quality grade.",
    ALIGNED: "Each taxon is matched to the target list by id, by name, and through renames, splits and merges.",
    PHOTOGRAPHED: "The photo of the lowest position of each observation, under a licence that allows copying.",
    GROUPED: "Observations of one day within a distance, directly or by way of others, are one group.",
    DRAWN: "Of each species, one observation of each spatio-temporal cluster of groups in turn, up to the cap.",
}


def steps_of(
    source: ObservationSource,
    settings: InatSettings,
    tables: Tables,
    inputs: Mapping[str, str],
    lists: Mapping[str, str],
    *,
    first: int | None = None,
) -> list[Step]:
    """The steps for a source; `inputs` are digests of its files, `lists` those of the lists of species.

    `first` limits a trial to the first observations of the input.
    """
    filters = filter_of(settings, source)
    fields, licences = {"years": filters.years, "grades": filters.grades}, {"licences": filters.licences}
    grouping = {"km": settings.km, "within": settings.groups}
    drawing = {name: getattr(settings, name) for name in ("cap", "clusters", "space_km", "time_days", "seed")}

    def step(name: str, work: Work, settings: Mapping[str, Any], needs: Sequence[str] = ()) -> Step:
        about = _ABOUT.get(name, "")
        return Step(name, table_work(work, tables), settings=settings, needs=tuple(needs), about=about)

    def reading(step: Step, more: Mapping[str, str] = {}, columns: int = 0) -> Step:
        """A step that also reads the source: it runs again when the source's files change, or what it takes of them."""
        return replace(step, version=source.version + columns, inputs={**inputs, **more})

    limit = "" if first is None else f" LIMIT {first}"
    return [
        reading(step(READ, partial(_read, source, limit), {"kind": source.kind})),
        step(FILTERED, partial(_filter, filters), fields),
        reading(step(ALIGNED, partial(align_observations, source, settings), {}), lists),
        reading(step(PHOTOGRAPHED, partial(_photographed, source, filters), licences)),
        step(GROUPED, partial(group_all, settings), grouping),
        step(DRAWN, partial(draw_all, settings), drawing),
        reading(step(LISTED, partial(_list, source), {}, (READ, PHOTOGRAPHED)), columns=1),  # the photo's position
    ]


def filter_of(settings: InatSettings, source: ObservationSource) -> ObservationFilter:
    """Which observations count, by what the settings say, else the source; `UsageError` for years and licences."""
    years = source.years if settings.years is None else years_of(settings.years)
    return ObservationFilter(years, settings.grade or source.grades, checked(settings.licence))


def _read(source: ObservationSource, limit: str, step: StepTables) -> Mapping[str, Any]:
    know_days(step.tables)
    rows = f"(SELECT * FROM {source.observations}{limit})"
    step.write(f"SELECT row_number() OVER () - 1 AS row, * FROM {rows}")
    return {"unreadable": rejects(step.tables)}


def _filter(wanted: ObservationFilter, step: StepTables) -> Mapping[str, Any]:
    columns = (
        "row, md5_number_lower(id) AS mark, md5_number_upper(id) AS mark2, "
        "md5_number_lower(COALESCE(observer, id)) AS who, taxon, latitude, longitude, day"
    )
    step.split(f"SELECT {columns}, {reason_of(wanted)} AS reason FROM {step.rows(READ)}")
    return {}


def reason_of(wanted: ObservationFilter) -> str:
    """Why an observation does not count, as SQL over the columns of `observations`; NULL if it does."""
    cases = {
        "fault IS NOT NULL": "fault",
        "id IS NULL": "'no id'",
        "latitude IS NULL OR longitude IS NULL": "'no position'",
        "NOT (abs(latitude) <= 90 AND abs(longitude) <= 180)": "'a position not on the Earth'",
        "latitude = 0 AND longitude = 0": "'position 0, 0'",
        "taxon IS NULL": "'no taxon'",
    }
    if wanted.years is not None:
        cases[f"NOT year(day) BETWEEN {wanted.years[0]} AND {wanted.years[1]}"] = "'another year'"
    if wanted.grades:
        grades = ", ".join(quoted(grade.strip().casefold()) for grade in wanted.grades)
        blanks = quoted(" \t\u00a0")
        cases[f"COALESCE(lower(trim(grade, {blanks})), '') NOT IN ({grades})"] = "'another quality grade'"
    return "CASE " + " ".join(f"WHEN {test} THEN {reason}" for test, reason in cases.items()) + " END"


# -- photos and licences ----------------------------------------------------------------------------------------


def _photographed(source: ObservationSource, wanted: ObservationFilter, step: StepTables) -> Mapping[str, Any]:
    tables, folder = step.tables, step.folder
    know_days(tables)
    rows, listed = step.rows(ALIGNED), folder / "listed.parquet"
    # What is first does not depend on the order of lines, which differs from one export to the next
    tables.run(
        f"CREATE OR REPLACE TEMP TABLE twice AS SELECT row FROM {rows} SEMI JOIN "
        f"(SELECT mark, mark2 FROM {rows} GROUP BY ALL HAVING count(*) > 1) USING (mark, mark2) QUALIFY row_number() "
        "OVER (PARTITION BY mark, mark2 ORDER BY day, target, latitude, longitude, who) > 1"
    )
    tables.write(
        f"SELECT o.row, o.mark, p.* EXCLUDE (observation) FROM {source.photos} p JOIN {rows} o "
        "ON md5_number_lower(p.observation) = o.mark AND md5_number_upper(p.observation) = o.mark2 "
        "ANTI JOIN twice t ON t.row = o.row",
        listed,
    )
    notes = {"unreadable": rejects(tables), "photos": tables.number(f"SELECT count(*) FROM {parquet(listed)}")}
    # The photo of the lowest position of each observation; of equal ones that of the lowest number
    several = "min(licence) OVER (PARTITION BY row, file) <> max(licence) OVER (PARTITION BY row, file)"
    order = "position NULLS LAST, length(file), file, photo, licence NULLS FIRST, observer, holder, width, height"
    tables.write(
        f"SELECT * REPLACE (COALESCE(fault, CASE WHEN {several} THEN 'a photo under several licences' END) AS fault) "
        f"FROM {parquet(listed)} QUALIFY row_number() OVER (PARTITION BY row ORDER BY {order}) = 1",
        folder / PRIMARY,
    )
    listed.unlink()
    step.split(_with_photos(tables, wanted, rows, parquet(folder / PRIMARY)))
    return notes


def _with_photos(tables: Tables, wanted: ObservationFilter, rows: str, primary: str) -> str:
    """Observations, with the reason why their photo cannot be used."""
    names = [name for (name,) in tables.rows(f"SELECT DISTINCT licence FROM {primary} WHERE licence IS NOT NULL")]
    reasons = [why_not(name, wanted.licences) for name in names]
    tables.know("licences", {"licence": names, "why": reasons})
    # By its id and by what it is fetched by; one observation keeps it
    ids = ("COALESCE(photo, file)", "COALESCE(url, file)")
    again = " OR ".join(f"row_number() OVER (PARTITION BY {id} ORDER BY mark) > 1" for id in ids)
    tables.run(f"CREATE OR REPLACE TEMP TABLE shared AS SELECT row FROM {primary} QUALIFY {again}")
    reason = (
        "CASE WHEN t.row IS NOT NULL THEN 'listed twice' WHEN p.row IS NULL THEN 'no photo' "
        f"WHEN p.fault IS NOT NULL THEN p.fault WHEN p.licence IS NULL THEN {quoted(why_not(None, ()))} "
        "WHEN l.why IS NOT NULL THEN l.why WHEN s.row IS NOT NULL THEN 'the photo of another observation' END"
    )
    return (
        f"SELECT o.row, o.mark, o.who, o.target, o.latitude, o.longitude, o.day, {reason} AS reason FROM {rows} o "
        f"LEFT JOIN twice t ON t.row = o.row LEFT JOIN {primary} p ON p.row = o.row "
        "LEFT JOIN licences l ON l.licence = p.licence LEFT JOIN shared s ON s.row = o.row"
    )


def _list(source: ObservationSource, step: StepTables) -> Mapping[str, Any]:
    """All fields of the drawn observations, by species and turn, for the files of the collection."""
    tables = step.tables
    # The table `ambiguous`: file names of several photos, which identify none of them
    know_days(tables)
    names = f"SELECT {_LAST_PART} AS name FROM {source.photos} p GROUP BY 1 HAVING count(DISTINCT photo) > 1"
    none = "SELECT NULL::VARCHAR AS name LIMIT 0"
    tables.run(f"CREATE OR REPLACE TEMP TABLE ambiguous AS {none if source.unique_names else names}")
    rejects(tables)  # the step that read the photos first has counted the lines that are not rows
    holder, people = "p.holder", ""
    if source.observers is not None:
        named = f"SELECT observer, min(name) AS name FROM {source.observers} GROUP BY 1"
        tables.run(f"CREATE OR REPLACE TEMP TABLE people AS {named}")
        holder, people = "COALESCE(p.holder, h.name)", "LEFT JOIN people h ON h.observer = p.observer"
    step.write(
        "SELECT row_number() OVER (ORDER BY d.target, d.turn) - 1 AS number, d.row, d.target, d.group, d.cluster, "
        "d.turn, o.id, o.latitude, o.longitude, o.accuracy, o.day, p.photo, p.licence, "
        f"{holder} AS holder, CASE WHEN n.name = p.file THEN {_NAME_OF_ITS_OWN} ELSE p.file END AS file, "
        "n.name IS NOT NULL AS ambiguous, p.position, p.url, p.width, p.height "
        f"FROM {step.rows(DRAWN)} d JOIN {step.rows(READ)} o ON o.row = d.row "
        f"JOIN {parquet(step.earlier[PHOTOGRAPHED] / PRIMARY)} p ON p.row = d.row {people} "
        f"LEFT JOIN ambiguous n ON n.name = {_LAST_PART} ORDER BY d.target, d.turn"
    )
    shared = tables.number(f"SELECT count(*) FROM {parquet(step.folder / KEPT_ROWS)} WHERE ambiguous")
    return {"unreadable": rejects(tables), "ambiguous": shared}


Columns = dict[str, NDArray[Any]]
OVER = "over the cap of its species"
BY_SPECIES = "species.parquet"
_AT_ONCE = 1 << 20  # rows


# -- groups -----------------------------------------------------------------------------------------------------


def group_all(how: InatSettings, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its group; the number of groups."""
    days = "epoch_ms(day) // 86400000"
    segment = f"target::BIGINT * 1000000 + {days} + 500000" if how.groups == "species" else days
    sql = (
        f"SELECT row, mark, who, target, latitude, longitude, CAST({days} AS BIGINT) AS day, "
        f"CAST({segment} AS BIGINT) AS segment FROM {step.rows('photographed')} ORDER BY segment, mark, row"
    )
    before = count = 0
    with _writing(step.folder) as write:
        for rows in together(step.tables.batches(sql), "segment"):
            group = groups(rows.pop("segment"), rows["latitude"], rows["longitude"], how.km)  # (n,)
            write(rows | {"group": group + before}, np.zeros(len(group), np.bool_))
            before += len(group)
            count += int((group == np.arange(len(group))).sum())
    return {"groups": count}


# -- draws ------------------------------------------------------------------------------------------------------


def draw_all(how: InatSettings, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its cluster and turn; the spread of the species over the Earth."""
    sql = f"SELECT * FROM {step.rows('grouped')} ORDER BY target, mark, row"
    facts: list[dict[str, Any]] = []
    with _writing(step.folder) as write:
        for rows in together(step.tables.batches(sql), "target"):
            ends = np.flatnonzero(np.diff(rows["target"])) + 1
            drawn: list[DrawResult] = []
            for begin, end in zip([0, *ends], [*ends, len(rows["target"])], strict=True):
                result, result_facts = _drawn({name: values[begin:end] for name, values in rows.items()}, how)
                drawn.append(result)
                facts.append(result_facts)
            columns = {name: rows[name] for name in ("row", "target", "group", "latitude", "longitude")}
            columns |= {name: np.concatenate([getattr(one, name) for one in drawn]) for name in ("cluster", "turn")}
            write(columns, columns["turn"] < 0)
    schema = pa.schema([(name, pa.float64() if name.startswith("spread") else pa.int64()) for name in _FACTS])
    pq.write_table(pa.Table.from_pylist(facts, schema), step.folder / BY_SPECIES, compression="zstd")
    # The mean spread over species of which some was not drawn, and that of random draws of the same size
    cut = [species for species in facts if species["drawn"] < species["candidates"]]
    means = {name: float(np.mean([species[name] for species in cut])) if cut else None for name in _FACTS[-3:]}
    return {"species": len(facts), "over_cap": len(cut), **means}


_FACTS = ("target", "candidates", "groups", "clusters", "drawn", "spread_before", "spread_drawn", "spread_random")


def _drawn(rows: Columns, how: InatSettings) -> tuple[DrawResult, dict[str, Any]]:
    """The draw of a species, and the facts of it: counts, and the spread of all, of the drawn, of as many at random."""
    names = ("mark", "who", "group", "latitude", "longitude", "day")
    of, species = SpeciesObservations(*(rows[name] for name in names)), int(rows["target"][0])
    drawn = draw(species, of, how)
    cells, taken = equal_cells(of.latitude, of.longitude), drawn.turn >= 0
    lots = lots_of(of.mark, how.seed + 1).argsort(kind="stable")[: taken.sum()]
    spreads = (spread(cells), spread(cells[taken]), spread(cells[lots]))
    counts = (len(cells), len(np.unique(of.group)), int(drawn.cluster.max()) + 1, int(taken.sum()))
    return drawn, dict(zip(_FACTS, (species, *counts, *spreads), strict=True))


# -- rows -------------------------------------------------------------------------------------------------------


def together(batches: Iterable[Any], column: str) -> Iterator[Columns]:
    """Rows that are sorted by a column, in pieces of about a million; rows of one value are never in two pieces."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _AT_ONCE:
            table = pa.Table.from_batches(waiting)
            values = table.column(column).to_numpy()
            cut = int(np.searchsorted(values, values[-1]))  # the next batch may continue the last value
            if cut:
                yield _arrays(table.slice(0, cut))
                waiting = table.slice(cut).combine_chunks().to_batches()
    if waiting:
        yield _arrays(pa.Table.from_batches(waiting))


def _arrays(table: Any) -> Columns:
    return {name: np.ascontiguousarray(table.column(name).to_numpy()) for name in table.column_names}


@contextmanager
def _writing(folder: Path) -> Iterator[Callable[[Columns, NDArray[np.bool_]], None]]:
    """Writes columns, split by which rows are over the cap; both tables are in place once they are whole."""
    with (
        new_file(folder / KEPT_ROWS) as kept_file,
        new_file(folder / DROPPED_ROWS) as dropped_file,
        ExitStack() as stack,
    ):
        writers: list[Any] = []

        def write(columns: Columns, over: NDArray[np.bool_]) -> None:
            survivors = pa.table({name: pa.array(values[~over]) for name, values in columns.items()})
            rows = pa.array(columns["row"][over])
            dropped = pa.table({"row": rows, "reason": pa.array([OVER] * len(rows), pa.string())})
            if not writers:
                for file, table in ((kept_file, survivors), (dropped_file, dropped)):
                    writer = pq.ParquetWriter(file, table.schema, compression="zstd")
                    writers.append(stack.enter_context(writer))
            for writer, table in zip(writers, (survivors, dropped), strict=True):
                writer.write_table(table)

        yield write
