"""The steps that group observations and draw each species' share, a few million rows in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from eyespot.storage.atomic import put_file

Columns = dict[str, NDArray[Any]]
OVER = "over the cap of its species"
BY_SPECIES = "species.parquet"
_AT_ONCE = 1 << 20  # rows


# -- groups -----------------------------------------------------------------------------------------------------


def group_all(how: Sampling, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its group; tell how many groups there are."""
    days = "epoch_ms(day) // 86400000"
    segment = f"target::BIGINT * 1000000 + {days} + 500000" if how.within == SPECIES else days
    sql = (
        f"SELECT row, mark, who, target, latitude, longitude, CAST({days} AS BIGINT) AS day, "
        f"CAST({segment} AS BIGINT) AS segment FROM {step.rows('photographed')} ORDER BY segment, mark, row"
    )
    before = count = 0
    with _written(step.folder) as write:
        for rows in together(step.tables.batches(sql), "segment"):
            found = groups(rows.pop("segment"), rows["latitude"], rows["longitude"], how.km)  # (n,)
            write(rows | {"group": found + before}, np.zeros(len(found), np.bool_))
            before += len(found)
            count += int((found == np.arange(len(found))).sum())
    return {"groups": count}


# -- draws ------------------------------------------------------------------------------------------------------


def draw_all(how: Sampling, step: StepTables) -> Mapping[str, Any]:
    """Write every observation with its cluster and turn, and for each species how evenly its share is spread."""
    drawing = DrawSettings(how.cap, how.clusters, how.space_km, how.time_days, how.seed)
    sql = f"SELECT * FROM {step.rows('grouped')} ORDER BY target, mark, row"
    told: list[dict[str, Any]] = []
    with _written(step.folder) as write:
        for rows in together(step.tables.batches(sql), "target"):
            drawn = [_drawn(part, drawing) for part in _parts(rows, "target")]
            told += [facts for _, facts in drawn]
            found = {name: np.concatenate([getattr(one, name) for one, _ in drawn]) for name in DrawResult._fields}
            kept = {name: rows[name] for name in ("row", "target", "group", "latitude", "longitude")}
            write(kept | found, found["turn"] < 0)
    schema = pa.schema([(name, pa.float64() if name.startswith("spread") else pa.int64()) for name in _FACTS])
    pq.write_table(pa.Table.from_pylist(told, schema), step.folder / BY_SPECIES, compression="zstd")
    return {"species": len(told), **_evenness(told)}


_FACTS = ("target", "candidates", "groups", "clusters", "drawn", "spread_before", "spread_drawn", "spread_random")


def _drawn(rows: Columns, how: DrawSettings) -> tuple[DrawResult, dict[str, Any]]:
    """What is drawn of a species, and the facts of it."""
    names = ("mark", "who", "group", "latitude", "longitude", "day")
    of = SpeciesObservations(*(rows[name] for name in names))
    drawn = draw(int(rows["target"][0]), of, how)
    species = int(rows["target"][0])
    # Counts, and the spread (effective number of equal-area cells) of all, of the drawn, and of as many by lot
    cells = equal_cells(of.latitude, of.longitude)
    taken = drawn.turn >= 0
    lots = lots_of(of.mark, how.seed + 1).argsort(kind="stable")[: taken.sum()]
    spreads = (spread(cells), spread(cells[taken]), spread(cells[lots]))
    counts = (len(cells), len(np.unique(of.group)), int(drawn.cluster.max()) + 1, int(taken.sum()))
    facts = dict(zip(_FACTS, (species, *counts, *spreads), strict=True))
    return drawn, facts


def _evenness(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean spread over species of which not all was drawn, beside that of random draws of the same size."""
    cut = [facts for facts in told if facts["drawn"] < facts["candidates"]]
    means = {name: float(np.mean([facts[name] for facts in cut])) if cut else None for name in _FACTS[-3:]}
    return {"over_cap": len(cut), **means}


# -- rows -------------------------------------------------------------------------------------------------------


def together(batches: Iterable[Any], column: str) -> Iterator[Columns]:
    """Rows that are sorted by a column in pieces of a million or so, those of one value never in two pieces."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(len(one) for one in held) >= _AT_ONCE:
            table = pa.Table.from_batches(held)
            values = table.column(column).to_numpy()
            cut = int(np.searchsorted(values, values[-1]))  # the last value may go on
            if cut:
                yield _arrays(table.slice(0, cut))
                held = table.slice(cut).combine_chunks().to_batches()
    if held:
        yield _arrays(pa.Table.from_batches(held))


def _arrays(table: Any) -> Columns:
    return {name: np.ascontiguousarray(table.column(name).to_numpy()) for name in table.column_names}


def _parts(rows: Columns, column: str) -> Iterator[Columns]:
    ends = np.flatnonzero(np.diff(rows[column])) + 1
    for begin, end in zip([0, *ends], [*ends, len(rows[column])], strict=True):
        yield {name: values[begin:end] for name, values in rows.items()}


@contextmanager
def _written(folder: Path) -> Iterator[Callable[[Columns, NDArray[np.bool_]], None]]:
    """Takes columns and which rows are over the cap; the rows that go on, and the others, are in place once whole."""
    with _growing(folder / KEPT) as kept, _growing(folder / DROPPED) as dropped:

        def write(columns: Columns, over: NDArray[np.bool_]) -> None:
            kept(pa.table({name: pa.array(values[~over]) for name, values in columns.items()}))
            rows = pa.array(columns["row"][over])
            dropped(pa.table({"row": rows, "reason": pa.array([OVER] * len(rows), pa.string())}))

        yield write


@contextmanager
def _growing(path: Path) -> Iterator[Callable[[Any], None]]:
    """A parquet file that takes one table after another; in place once it is whole."""
    temporary = path.with_name(f".{path.name}.part")
    writers: list[Any] = []

    def write(table: Any) -> None:
        if not writers:
            writers.append(pq.ParquetWriter(temporary, table.schema, compression="zstd"))
        writers[0].write_table(table)

    yield write
    writers[0].close()
    put_file(temporary, path)
