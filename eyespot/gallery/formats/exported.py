"""Writing a space of a gallery for others: the rows that can be found, in pieces, without who or where unless asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import DTypeLike, NDArray

from eyespot.gallery.formats import arrays
from eyespot.gallery.photos.names import stored_name
from eyespot.gallery.view import View, place_of
from eyespot.storage.atomic import is_forbidden
from eyespot.storage.files import whole_folder
from eyespot.types import EyespotError, NothingFound

BATCH = 1 << 14
# Compared in lower case without separators: Darwin Core, EXIF, Flickr, iNaturalist and img2dataset spell them so.
PLACES = """
    latitude longitude lat lon lng long position coordinates location locality place placeguess geotag geolocation geo
    decimallatitude decimallongitude verbatimlatitude verbatimlongitude verbatimlocality verbatimcoordinates
"""
OWNERS = """
    author owner ownername photographer artist creator user username userid userlogin usernickname login uploader
    observer observerid observername recordedby identifiedby rightsholder copyright copyrightholder credit attribution
    byline email realname
"""


@dataclass(frozen=True)
class Export:
    """What goes out: columns that tell of places and owners too, or not; vectors as they are, or in another type."""

    all_columns: bool = False
    dtype: str | None = None


class Exported(NamedTuple):
    """What was written, and the columns that were not."""

    rows: int
    parts: int
    left_out: list[str]


class Chunk(NamedTuple):
    """Some rows: their facts with whole paths, and their vectors (rows, dim)."""

    facts: pa.Table
    vectors: NDArray[Any]


class ExportLayout(Protocol):
    """How a format lays out its files; `{}` in their names is a part's number."""

    vectors: str
    table: str
    part_rows: int

    def columns(self, facts: pa.Table) -> pa.Table:
        """The format's own columns."""
        ...


def tells_too_much(name: str) -> bool:
    """Whether a column by this name tells where a picture was taken or whose it is."""
    plain = _plain(name)
    return plain in PLACES.split() or names_owner(name) or plain.startswith(("gps", "exif"))


def names_owner(name: str) -> bool:
    """Whether a column by this name tells whose a picture is."""
    return _plain(name) in OWNERS.split()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def write(view: View, out: Path, form: ExportLayout, export: Export) -> Exported:
    """Write every row of a space that can be found, in a folder that is whole or not there at all.

    Raises `UsageError` if the folder holds something, `NothingFound` for a space without pictures.
    """
    total = int(view.live.sum())
    if not total:
        raise NothingFound(f"{view.gallery.path} has no pictures to export; add some with: eyespot index PHOTOS")
    dtype = np.dtype(export.dtype or np.result_type(*(block.dtype for block in view.blocks)))
    schema, left_out = _schema(view, export)
    parts = -(-total // form.part_rows)
    try:
        with whole_folder(out) as folder:
            for number, chunks in groupby(_cut(_chunks(view, schema), form.part_rows), key=lambda piece: piece[0]):
                rows = min(form.part_rows, total - number * form.part_rows)
                name = str(number).zfill(len(str(parts - 1)))
                part = _FilePart(folder / form.vectors.format(name), folder / form.table.format(name), form)
                part.write((chunk for _, chunk in chunks), (rows, view.space.dim), dtype)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        way_out = "name another folder" if is_forbidden(error) else "make room there or name another folder"
        raise EyespotError(f"cannot write {out} ({reason}); {way_out}") from error
    return Exported(total, parts, left_out)


# -- rows ---------------------------------------------------------------------------------------------------


def _chunks(view: View, schema: pa.Schema) -> Iterator[Chunk]:
    roots = view.gallery.header.roots
    live = np.split(view.live, view.starts[1:-1])  # a mask (rows,) for each shard
    for table, block, mask in zip(view.tables, view.blocks, live, strict=True):
        at = 0
        for batch in _batches(table):
            kept = mask[at : at + len(batch)]
            facts = pa.Table.from_batches([batch]).filter(pa.array(kept))
            # Facts in the common columns, every path whole
            rows = facts.select(["roots", "paths"]).to_pylist()
            named = (zip(row["roots"], row["paths"], strict=True) for row in rows)
            places = [[stored_name(place_of(roots[number], path)) for number, path in row] for row in named]
            spelled = {name.lower(): name for name in facts.column_names}
            columns = {
                field.name: facts[spelled[field.name.lower()]].cast(field.type)
                if field.name.lower() in spelled
                else pa.nulls(len(facts), field.type)
                for field in schema
            }
            export_columns = pa.table(columns | {"paths": pa.array(places, pa.list_(pa.string()))}, schema=schema)
            yield Chunk(export_columns, block[at : at + len(batch)][kept])
            at += len(batch)


def _batches(table: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(table) as file:
        yield from file.iter_batches(BATCH)


def _schema(view: View, export: Export) -> tuple[pa.Schema, list[str]]:
    """The columns of all shards, a name once whatever its case; and those that are left out."""
    fields: dict[str, pa.Field[Any]] = {}
    for table in view.tables:
        for field in pq.read_schema(table):
            known = fields.get(field.name.lower(), field)
            if known.type == field.type:
                wider = known.type
            else:
                wider = pa.float64() if {known.type, field.type} == {pa.int64(), pa.float64()} else pa.string()
            fields[field.name.lower()] = known.with_type(wider)
    del fields["live"], fields["roots"]
    left_out = [] if export.all_columns else [field.name for field in fields.values() if tells_too_much(field.name)]
    return pa.schema([field for field in fields.values() if field.name not in left_out]), left_out


def _cut(chunks: Iterator[Chunk], part_rows: int) -> Iterator[tuple[int, Chunk]]:
    """Chunks cut where a part ends, each with the number of its part."""
    done = 0
    for chunk in chunks:
        at = 0
        while at < len(chunk.vectors):
            step = min(len(chunk.vectors) - at, part_rows - done % part_rows)
            yield done // part_rows, Chunk(chunk.facts.slice(at, step), chunk.vectors[at : at + step])
            at, done = at + step, done + step


# -- files --------------------------------------------------------------------------------------------------


class _FilePart(NamedTuple):
    """The two files of one part."""

    vectors: Path
    table: Path
    form: ExportLayout

    def write(self, chunks: Iterator[Chunk], shape: tuple[int, int], dtype: DTypeLike) -> None:
        first = next(chunks)
        with ExitStack() as files:
            for path in self.vectors, self.table:
                path.parent.mkdir(exist_ok=True)
            vectors, table = (files.enter_context(path.open("wb")) for path in (self.vectors, self.table))
            writer = files.enter_context(pq.ParquetWriter(table, self.form.columns(first.facts).schema))
            arrays.begin(vectors, shape, dtype)
            for chunk in chain([first], chunks):
                writer.write_table(self.form.columns(chunk.facts))
                arrays.append(vectors, chunk.vectors.astype(dtype))
