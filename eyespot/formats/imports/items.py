"""From somebody's table of facts to a shard's `items.parquet`, column by column, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eyespot.formats.imports.tables import BATCH, Column, FactTable, pc
from eyespot.gallery.disk import ITEMS
from eyespot.gallery.facts import FIXED, schema_of
from eyespot.gallery.items_table import without_nan
from eyespot.photos.labels import MEASURED
from eyespot.photos.provenance import DATE_SOURCE, POSITION_SOURCE, ROUGH
from eyespot.storage.digests import new_digested
from eyespot.storage.systems import usable_cores
from eyespot.types import Mask

ROW_GROUP = 8192
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Layout:
    """Which columns of a format name a row and say where its picture lies; the first that is there and filled counts.

    A column `paths` may be a list of text; any other is text.
    """

    keys: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """What the rows of one part are called: `FORMAT:KEY`, or `FORMAT:PART/ROW` where a row has no key.

    A key that begins with `FORMAT:` came out of a gallery and is the id as it was.
    """

    format: str
    part: str
    layout: Layout


def labels_of(kinds: Mapping[str, str]) -> dict[str, str]:
    """The columns that become labels: all but those that eyespot keeps under a name of its own."""
    taken = {*MEASURED, *FIXED.names, "image_path"}
    labels: dict[str, str] = {}
    for name, kind in kinds.items():
        if name and name.lower() not in taken and not name.startswith("__index_level_"):
            labels[name] = kind or "text"
            taken.add(name.lower())
    there = set(map(str.lower, kinds))
    sources = {source: "text" for source, fact in _SOURCES.items() if fact in there and source not in there}
    return labels | sources


def key_hashes(facts: FactTable, naming: Naming) -> Hashes:
    """One number for each row's id, equal for equal ids, (rows,); different ids share one once in 2**64."""
    wanted = [name for name in facts.kinds if name.lower() in naming.layout.keys]
    ids = (_ids(batch, naming, start) for start, batch in _numbered(facts.batches(wanted)))
    return _hashes(ids)


def item_hashes(shard: Path) -> Hashes:
    """The same numbers for the ids of a shard that is written, in order."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(shard / "items.parquet") as file:
        return np.sort(_hashes(batch.column(0) for batch in file.iter_batches(BATCH, columns=["id"])))


def _hashes(ids: Iterator[Column]) -> Hashes:
    import duckdb

    found = [np.zeros(0, np.uint64)]
    with duckdb.connect(config={"threads": usable_cores()}) as connection:
        for part in ids:
            rows = connection.from_arrow(pa.table({"id": part})).project("hash(id) AS hash")
            found.append(np.asarray(rows.fetchnumpy()["hash"], np.uint64))
    return np.concatenate(found)


def repeated(hashes: Hashes, known: Sequence[Hashes]) -> Mask:
    """True for rows whose id was there before, further up or in one of the `known` parts, each in order, (rows,)."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    after_equal = np.concatenate([[False], ordered[1:] == ordered[:-1]])[: len(hashes)]
    again = np.empty(len(hashes), bool)
    for part in known:
        after_equal |= np.searchsorted(part, ordered) < np.searchsorted(part, ordered, side="right")
    again[order] = after_equal
    return again


def write_items(
    folder: Path, facts: FactTable, naming: Naming, *, shard: int, root: int, labels: Mapping[str, str], again: Mask
) -> None:
    """A shard's table; ids marked in `again` get `#SHARD/ROW` behind them, which no other row has.

    labels: the label columns of all shards with their kinds.
    """
    import pyarrow.parquet as pq

    schema = schema_of(labels)
    used = {*naming.layout.keys, *naming.layout.paths, *_FACTS}
    wanted = [name for name in (*facts.kinds, *facts.lists) if name in labels or name.lower() in used]
    path = folder / ITEMS
    with new_digested(path) as file, pq.ParquetWriter(file.io, schema, write_page_checksum=True) as writer:
        for start, batch in _numbered(facts.batches(wanted)):
            ids = _ids(batch, naming, start)
            if (repeats := again[start : start + len(batch)]).any():
                apart = pc.binary_join_element_wise(ids, _joined(f"#{shard}/", _row_numbers(start, len(ids))), "")
                ids = pc.if_else(pa.array(repeats), apart, ids)
            paths = _listed(batch) if "paths" in naming.layout.paths else None
            if paths is None:
                texts = _first_filled(batch, naming.layout.paths)
                ends = np.concatenate([[0], np.cumsum(np.asarray(texts.is_valid()))])  # (rows + 1,)
                paths = _lists(ends, texts.drop_null())
            roots = pa.array(np.full(len(paths.values), root, np.int32))
            places = {"paths": paths, "roots": _lists(paths.offsets, roots)}
            # The fixed columns that the table knows by their names; what does not fit its column is null
            found: dict[str, Column] = {}
            for facts_name, fitted in _FACTS.items():
                column = _column(batch, facts_name)
                found[facts_name] = (
                    pa.nulls(len(batch), FIXED.field(facts_name).type) if column is None else fitted(column)
                )
            columns = places | found
            for name, kind in labels.items():
                column = _column(batch, name)
                if column is None and name in _SOURCES:
                    column = _source(columns[_SOURCES[name]], _column(batch, _SOURCES[name]))
                columns[name] = _ARROW[kind](pa.nulls(len(batch)) if column is None else column)
            columns |= {"id": ids, "live": pa.array(np.ones(len(batch), bool))}
            arrays = [columns[name] for name in schema.names]
            writer.write_table(without_nan(pa.Table.from_arrays(arrays, schema=schema)), row_group_size=ROW_GROUP)


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    start = 0
    for batch in batches:
        yield start, batch
        start += len(batch)


# -- ids ----------------------------------------------------------------------------------------------------


def _ids(batch: pa.RecordBatch, naming: Naming, start: int) -> Column:
    keys = _first_filled(batch, naming.layout.keys)
    if keys.null_count:
        keys = pc.coalesce(keys, _joined(f"{naming.part}/", _row_numbers(start, len(batch))))
    prefix = f"{naming.format}:"
    return pc.if_else(pc.starts_with(keys, prefix), keys, _joined(prefix, keys))


def _joined(head: str, tails: Column) -> Column:
    return pc.binary_join_element_wise(head, tails, "")


def _row_numbers(start: int, count: int) -> Column:
    return pa.array(np.arange(start, start + count)).cast(pa.string())


# -- places -------------------------------------------------------------------------------------------------


def _listed(batch: pa.RecordBatch) -> Column | None:
    column = _column(batch, "paths")
    if column is None or not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return None
    # Built anew, so that no list is null, none holds a null, and the values start at the first offset.
    counts = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    parents, values = np.repeat(np.arange(len(column)), counts), pc.list_flatten(column)
    valid = np.asarray(values.is_valid())
    ends = np.searchsorted(parents[valid], np.arange(len(column) + 1))  # (rows + 1,)
    return _lists(ends, values.drop_null().cast(pa.string()))


def _lists(ends: Column, values: Column) -> Column:
    offsets: Column = pa.array(np.asarray(ends, np.int32))
    return pa.ListArray.from_arrays(offsets, values)


# -- facts and labels ---------------------------------------------------------------------------------------


def _whole(type: pa.DataType) -> Callable[[Column], Column]:
    limit = 2**31 - 1 if type == pa.int32() else 2**63 - 1

    def fitted(column: Column) -> Column:
        if not pa.types.is_signed_integer(column.type):
            numbers = _numbers(column)
            whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
            column = _where(whole, numbers).cast(pa.int64())
        column = column.cast(pa.int64())
        return _where(pc.and_(pc.greater_equal(column, 0), pc.less_equal(column, limit)), column).cast(type)

    return fitted


def _degrees(limit: float) -> Callable[[Column], Column]:
    def fitted(column: Column) -> Column:
        numbers = _numbers(column)
        return _where(pc.less_equal(pc.abs(numbers), limit), numbers)

    return fitted


def _numbers(column: Column) -> Column:
    if pa.types.is_string(column.type):
        column = _where(pc.match_substring_regex(column, r"^[-+]?[0-9]+(\.[0-9]*)?$"), column)
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return pa.nulls(len(column), pa.float64())
    return column.cast(pa.float64(), safe=False)


def _moment(column: Column) -> Column:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("s"), safe=False)
    text = pc.replace_substring_regex(_text(column), r"^(\d{4}-\d\d-\d\d)$", r"\1T00:00:00")
    text = pc.replace_substring_regex(text, r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d).*$", r"\1T\2")
    return pc.strptime(text, "%Y-%m-%dT%H:%M:%S", unit="s", error_is_null=True)


def _source(facts: Column, given: Column | None) -> Column:
    """`labels` beside each date or position that the table gives, with `(day)` where a date has no time."""
    day = pa.scalar(given is not None and pa.types.is_date(given.type))
    if given is not None and pa.types.is_string(given.type):
        day = pc.fill_null(pc.match_substring_regex(given, r"^\d{4}-\d\d-\d\d$"), False)
    source = pc.if_else(day, f"labels {ROUGH[0]}", "labels")
    return pc.if_else(pc.is_valid(facts), source, pa.scalar(None, pa.string()))


def _text(column: Column) -> Column:
    return column.cast(pa.string())


_FACTS: dict[str, Callable[[Column], Column]] = {
    **dict.fromkeys(("size", "mtime"), _whole(pa.int64())),
    **dict.fromkeys(("width", "height"), _whole(pa.int32())),
    "taken": _moment,
    "latitude": _degrees(90.0),
    "longitude": _degrees(180.0),
    "camera": _text,
}
MEANT = tuple(_FACTS)
_SOURCES = {DATE_SOURCE: "taken", POSITION_SOURCE: "latitude"}
_ARROW: dict[str, Callable[[Column], Column]] = {
    "int": lambda column: column.cast(pa.int64()),
    "float": lambda column: column.cast(pa.float64(), safe=False),
    "text": _text,
}


# -- columns ------------------------------------------------------------------------------------------------


def _column(batch: pa.RecordBatch, name: str) -> Any:
    """A column in a plain type, or None; if none is spelled like this, one that differs in upper and lower case."""
    names = batch.schema.names
    alike = [at for at, other in enumerate(names) if other.lower() == name.lower()]
    if not alike:
        return None
    column: Column = batch.column(names.index(name) if name in names else alike[0])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type) or pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    return _text(column) if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type) else column


def _first_filled(batch: pa.RecordBatch, names: Sequence[str]) -> Column:
    """The first of these columns that says something, row by row, as text; null where none does."""
    columns = [column for name in names if (column := _column(batch, name)) is not None]
    texts = [_text(column) for column in columns if not pa.types.is_nested(column.type)]
    filled = [_where(pc.not_equal(text, ""), text) for text in texts]
    return pc.coalesce(*filled, pa.nulls(len(batch), pa.string()))


def _where(test: Column, column: Column) -> Column:
    return pc.if_else(test, column, pa.nulls(len(column), column.type))
