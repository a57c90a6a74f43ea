"""The last step: checks the pictures and writes them; doubtful ones wait for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from eyespot.curate.inat.naming import CollectionSpecies, file_name, species_of
from eyespot.curate.inat.pictures import Looks, digest_folder
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.curate.inat.steps import ALIGNED
from eyespot.curate.inat.table_step import DROPPED, KEPT, folder_of
from eyespot.pipelines import Context, Records, SqlStep, Step

PICTURES = "pictures"
WORK, TABLES = ".work", "tables"
ABOUT = "Pictures are decoded and checked; doubtful ones wait for a person. They are made small, without metadata."


def picture_step(out: Path, settings: CollectionSettings) -> Step:
    """The step that checks the pictures of the drawn rows; it runs every time, as photos and decisions change."""
    how = settings.pictures

    def look(records: Records, folder: Path, context: Context) -> int:
        species = species_of(folder_of(context.earlier[ALIGNED]), settings.positions)
        looks = Looks(how, out, digest_folder(out / WORK, how))
        rows, total = drawn_rows(folder_of(records), species), len(records)
        pictures = looks.all(rows, settings.threads, lambda done: context.tell(PICTURES, done, total))
        _write_outcomes(looks.judged(pictures), folder)
        return 0

    fields = {"checks": how.checks, "side": how.side, "face": how.face}
    return Step(PICTURES, SqlStep(look, "number"), settings=fields, needs=(ALIGNED,), about=ABOUT, always=True)


def drawn_rows(listed: Path, species: Sequence[CollectionSpecies]) -> Iterator[dict[str, Any]]:
    """The drawn rows in order, each with its place in the collection."""
    for row in read_rows(listed / KEPT):
        row["target_file"] = file_name(row["photo"], species[row["target"]].folder)
        yield row


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, a few thousand at a time in memory."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1 << 13):
            yield from batch.to_pylist()


def _write_outcomes(outcomes: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """The sizes of pictures in place to one table, the reasons of the others to another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {"number": pa.int64(), "width": pa.int32(), "height": pa.int32(), "reason": pa.string()}
    sizes = pa.schema([(name, kinds[name]) for name in ("number", "width", "height")])
    reasons = pa.schema([(name, kinds[name]) for name in ("number", "reason")])
    numbered = ({**outcome, "number": number} for number, outcome in enumerate(outcomes))
    with pq.ParquetWriter(folder / KEPT, sizes) as survivors, pq.ParquetWriter(folder / DROPPED, reasons) as dropped:
        while rows := list(islice(numbered, 1 << 13)):
            survivors.write_table(pa.Table.from_pylist([row for row in rows if row["reason"] is None], sizes))
            dropped.write_table(pa.Table.from_pylist([row for row in rows if row["reason"] is not None], reasons))
