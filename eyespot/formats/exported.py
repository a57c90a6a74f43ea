"""Writing a space of a gallery for others: the rows that can be found, in pieces, without who or where unless asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.gallery.view import View, place_of
from eyespot.photos.attribution import LICENCES, Attribution, attribution_of, plain_name
from eyespot.photos.names import stored_name
from eyespot.types import Mask, NothingFound

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


class ExportColumns(NamedTuple):
    """The columns that go out, those that do not, and those of `Attribution` that are put together out of others.

    A photo with a licence is handed on with it and with whom it asks to name, for it may not be handed on without.
    """

    schema: pa.Schema
    left_out: list[str]
    derived: list[str]


class Chunk(NamedTuple):
    """Some rows: their facts with whole paths, their vectors (rows, dim), and the first path of each from its root."""

    facts: pa.Table
    vectors: NDArray[Any]
    relative: list[str]


def tells_too_much(name: str) -> bool:
    """Whether a column by this name tells where a picture was taken or whose it is."""
    plain = plain_name(name)
    return plain in PLACES.split() or names_owner(name) or plain.startswith(("gps", "exif", "embedded", "sidecar"))


def names_owner(name: str) -> bool:
    """Whether a column by this name tells whose a picture is."""
    return plain_name(name) in OWNERS.split()


def wanted_rows(view: View, chosen: Mask | None) -> Mask:
    """The rows that go out, (rows,): those that can be found and are chosen; `NothingFound` if there are none."""
    if not view.live.any():
        raise NothingFound(f"{view.gallery.path} has no pictures to export; add some with: eyespot index PHOTOS")
    wanted: Mask = view.live if chosen is None else view.live & chosen
    if not wanted.any():
        raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
    return wanted


def dtype_of(view: View) -> np.dtype[Any]:
    """The type that holds the vectors of all shards."""
    return np.dtype(np.result_type(*(block.dtype for block in view.blocks)))


# -- rows ---------------------------------------------------------------------------------------------------


def chunks_of(view: View, columns: ExportColumns, wanted: Mask) -> Iterator[Chunk]:
    """The wanted rows in their order, some thousand at a time; `paths` are whole."""
    masks = np.split(wanted, view.starts[1:-1])  # a mask (rows,) for each shard
    for table, block, mask in zip(view.tables, view.blocks, masks, strict=True):
        at = 0
        for batch in _batches(table):
            chosen = mask[at : at + len(batch)]
            facts = pa.Table.from_batches([batch]).filter(pa.array(chosen))
            if len(facts):
                first = [(paths or [""])[0] for paths in facts["paths"].to_pylist()]
                yield Chunk(_in_common(view, facts, columns), block[at : at + len(batch)][chosen], first)
            at += len(batch)


def _in_common(view: View, facts: pa.Table, columns: ExportColumns) -> pa.Table:
    """Facts of a shard in the columns of all."""
    roots = view.gallery.header.roots
    places = [
        [stored_name(place_of(roots[number], path)) for number, path in zip(row["roots"], row["paths"], strict=True)]
        for row in facts.select(["roots", "paths"]).to_pylist()
    ]
    made: dict[str, Any] = {"paths": pa.array(places, pa.list_(pa.string()))}
    if columns.derived:
        rights = [attribution_of(row)._asdict() for row in facts.drop_columns(["roots", "paths"]).to_pylist()]
        made |= {name: pa.array([row[name] for row in rights], pa.string()) for name in columns.derived}
    spelled = {name.lower(): name for name in facts.column_names}
    for field in columns.schema:
        if field.name not in made:
            there = spelled.get(field.name.lower())
            made[field.name] = pa.nulls(len(facts), field.type) if there is None else facts[there].cast(field.type)
    return pa.table({name: made[name] for name in columns.schema.names}, schema=columns.schema)


def _batches(table: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(table) as file:
        yield from file.iter_batches(BATCH)


def columns_of(view: View, all_columns: bool = False) -> ExportColumns:
    """The columns of all shards, a name once whatever its case; those left out tell of places and owners."""
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
    licensed = any(plain_name(name) in LICENCES for name in fields)
    left_out = [] if all_columns else [field.name for field in fields.values() if tells_too_much(field.name)]
    going = [field for field in fields.values() if field.name not in left_out]
    names = {field.name.lower() for field in going}
    derived = [name for name in Attribution._fields if licensed and name not in names]
    schema = pa.schema([*going, *(pa.field(name, pa.string()) for name in derived)])
    return ExportColumns(schema, [name for name in left_out if name.lower() not in derived], derived)
