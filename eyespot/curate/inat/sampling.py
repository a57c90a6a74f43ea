"""The steps that group observations and draw each species' share, a few million rows in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.curate.inat.drawing import DrawResult, DrawSettings, SpeciesObservations, draw, lots_of
from eyespot.curate.inat.grouping import groups
from eyespot.curate.inat.settings import SPECIES, Sampling
from eyespot.curate.inat.sphere import equal_cells, spread
from eyespot.curate.inat.table_step import DROPPED, KEPT, StepTables
from eyespot.storage.atomic import new_file

Columns = dict[str, NDArray[Any]]
OVER = "over the cap of its species"
BY_SPECIES = "species.parquet"
_AT_ONCE = 1 << 20  # rows


# -- groups -----------------------------------------------------------------------------------------------------


def group_all(how: Sampling, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its group; the number of groups."""
    days = "epoch_ms(day) // 86400000"
    segment = f"target::BIGINT * 1000000 + {days} + 500000" if how.within == SPECIES else days
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


def draw_all(how: Sampling, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its cluster and turn; the spread of the species over the Earth."""
    drawing = DrawSettings(how.cap, how.clusters, how.space_km, how.time_days, how.seed)
    sql = f"SELECT * FROM {step.rows('grouped')} ORDER BY target, mark, row"
    facts: list[dict[str, Any]] = []
    with _writing(step.folder) as write:
        for rows in together(step.tables.batches(sql), "target"):
            ends = np.flatnonzero(np.diff(rows["target"])) + 1
            drawn: list[DrawResult] = []
            for begin, end in zip([0, *ends], [*ends, len(rows["target"])], strict=True):
                result, result_facts = _drawn({name: values[begin:end] for name, values in rows.items()}, drawing)
                drawn.append(result)
                facts.append(result_facts)
            columns = {name: rows[name] for name in ("row", "target", "group", "latitude", "longitude")}
            columns |= {name: np.concatenate([getattr(it, name) for it in drawn]) for name in DrawResult._fields}
            write(columns, columns["turn"] < 0)
    schema = pa.schema([(name, pa.float64() if name.startswith("spread") else pa.int64()) for name in _FACTS])
    pq.write_table(pa.Table.from_pylist(facts, schema), step.folder / BY_SPECIES, compression="zstd")
    # The mean spread over species of which some was not drawn, and that of random draws of the same size
    cut = [species for species in facts if species["drawn"] < species["candidates"]]
    means = {name: float(np.mean([species[name] for species in cut])) if cut else None for name in _FACTS[-3:]}
    return {"species": len(facts), "over_cap": len(cut), **means}


_FACTS = ("target", "candidates", "groups", "clusters", "drawn", "spread_before", "spread_drawn", "spread_random")


def _drawn(rows: Columns, how: DrawSettings) -> tuple[DrawResult, dict[str, Any]]:
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
    with new_file(folder / KEPT) as kept_file, new_file(folder / DROPPED) as dropped_file, ExitStack() as stack:
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
