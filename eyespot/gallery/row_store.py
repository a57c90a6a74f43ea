"""Facts of single rows, and rows by their ids, from two files beside `items.parquet`, which are mapped.

`items.arrow` has the columns of the table in one Arrow batch, texts that repeat as numbers of a dictionary: sixty rows
of a million take a millisecond, where parquet decodes a group of rows for each. `items.ids.arrow` has a number made of
each id, sorted, and the row that it stands for. `complete` makes them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.files import Damaged
from eyespot.kernels.prefetch import MOST as MOST_PREFETCHED, prefetch_bytes
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, new_digested, sound_digests
from eyespot.types import Progress, no_progress

if TYPE_CHECKING:
    import pyarrow as pa


ROWS, IDS = disk.ROW_STORE
MOST = 1 << 22  # rows; the facts of a larger shard would not fit into memory
_TEXT = 1 << 30  # bytes of a column, from which it needs wide offsets
REPEATED = 8  # a text that comes so many times on average is a number of a dictionary
_SOURCE = b"items"  # the digest of the table

Numbers = NDArray[np.uint64]
RowNumbers = NDArray[np.int64]
Spans = tuple[RowNumbers, RowNumbers]  # addresses: of the first byte, and behind the last one


class IdIndex(NamedTuple):
    """Numbers made of ids, in order, and the row of each, both (rows,)."""

    numbers: Numbers
    rows: NDArray[np.uint32]

    @classmethod
    def of(cls, ids: pa.Array[Any]) -> IdIndex:
        """The index of these ids, (rows,)."""
        numbers = numbers_of_column(ids)
        order = np.argsort(numbers, kind="stable")
        return cls(numbers[order], order.astype(np.uint32))

    def candidates(self, wanted: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a place in `wanted` and a row whose id may be that one; two ids seldom share a number."""
        first, behind = (np.searchsorted(self.numbers, wanted, side) for side in ("left", "right"))
        counts = behind - first
        at = np.repeat(np.arange(len(wanted)), counts)
        steps = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, self.rows[np.repeat(first, counts) + steps].astype(np.int64)


# -- reading ------------------------------------------------------------------------------------------------


def open_rows(shard: Path) -> pa.RecordBatch | None:
    """The facts of a shard's rows, mapped; None if it has no such file, or that is out of date or damaged."""
    return _mapped(shard, ROWS)


def open_ids(shard: Path) -> IdIndex | None:
    """The rows of a shard by their ids; None as above."""
    if (batch := _mapped(shard, IDS)) is None:
        return None
    numbers: Any = np.from_dlpack(batch.column(0))
    rows: Any = np.from_dlpack(batch.column(1))
    return IdIndex(numbers, rows)


def take_rows(shard: Path, rows: Sequence[int]) -> list[dict[str, Any]]:
    """What is known of some rows of a shard, in their order; from the table itself where there is no such file."""
    batch = open_rows(shard)
    return items_table.read_rows(shard, rows).to_pylist() if batch is None else rows_in(batch, rows)


def rows_in(batch: pa.RecordBatch, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Some rows of a batch, in their order; of some columns, or of all."""
    import pyarrow as pa

    batch, numbers = batch if columns is None else batch.select(list(columns)), np.array(rows, np.int64)
    if batch.num_rows > MOST_PREFETCHED:  # one read brings all of a smaller table
        prefetch_facts(batch, numbers)
    part = items_table.taken(pa.Table.from_batches([batch]), numbers).combine_chunks()
    lists = [_values(column.chunk(0) if column.num_chunks else column) for column in part.columns]
    names = part.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def _values(column: Any) -> list[Any]:
    """The values of a column; of a dictionary each is looked up once, and pyarrow's decoding would load its compute."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    numbers = column.indices.to_pylist()
    known = {number: column.dictionary[number].as_py() for number in {*numbers} - {None}}
    return [known.get(number) for number in numbers]


def find_rows(shard: Path, ids: Sequence[str]) -> NDArray[np.int64]:
    """The row of each id in a shard, (ids,); -1 for one that is not there. Without an index all its ids are read."""
    index, batch = open_ids(shard), open_rows(shard)
    names: Any = items_table.read_items(shard, ["id"])["id"] if index is None or batch is None else batch.column("id")
    return find_ids(names, index or IdIndex.of(names.combine_chunks()), ids)


def find_ids(names: Any, index: IdIndex, ids: Sequence[str]) -> NDArray[np.int64]:
    """The first row of each id, (ids,), among names by row; -1 for one that is not there."""
    found = np.full(len(ids), -1, np.int64)
    at, rows = index.candidates(numbers_of(ids))
    for place, row in zip(at.tolist(), rows.tolist(), strict=True):
        if found[place] < 0 and names[row].as_py() == ids[place]:
            found[place] = row
    return found


def _mapped(shard: Path, name: str) -> pa.RecordBatch | None:
    if not (shard / name).is_file() or damaged_at_a_glance(shard, [name]):
        return None
    import pyarrow as pa

    try:
        with pa.memory_map(str(shard / name)) as file:  # what is mapped stays, and the file does not count as open
            reader = pa.ipc.open_file(file)
            same = (reader.schema.metadata or {}).get(_SOURCE) == sound_digests(shard).get(disk.ITEMS, "?").encode()
            return reader.get_batch(0) if same and reader.num_record_batches else None
    except (OSError, pa.ArrowInvalid):
        return None


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column has in the table itself."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) else kind


# -- the parts of a mapped batch that rows lie in: a row is a few bytes in many places of the file ------------------


def prefetch_facts(batch: pa.RecordBatch, rows: RowNumbers) -> None:
    """Let the system read these rows of all columns together; where texts begin has to be read before the texts.

    Does nothing for more rows than are worth it.
    """
    if not 0 < len(rows) <= MOST_PREFETCHED:
        return
    columns = [_places(column, rows) for column in batch.columns]
    while columns:
        spans = [next(column, None) for column in columns]
        there = [one for one in spans if one is not None]
        if there:
            prefetch_bytes(*(np.concatenate(ends) for ends in zip(*there, strict=True)))
        columns = [column for column, one in zip(columns, spans, strict=True) if one is not None]


def _places(column: Any, rows: RowNumbers) -> Iterator[Spans]:
    """Where rows of a column lie, one step after the other: each is found in what the step before has read."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.indices
    buffers, at = column.buffers(), rows + column.offset
    if not len(rows) or len(buffers) < 2 or buffers[1] is None:
        return
    kinds = {pa.string(): np.int32, pa.large_string(): np.int64}
    if buffers[0] is not None:
        yield _bytes(buffers[0], at // 8, 1)
    if pa.types.is_primitive(column.type):
        start = buffers[1].address + at * column.type.bit_width // 8
        yield start, start + max(1, column.type.bit_width // 8)
    elif pa.types.is_list(column.type) or column.type in kinds:  # rows lie between two offsets each
        offsets: Any = np.frombuffer(buffers[1], kinds.get(column.type, np.int32))
        yield _bytes(buffers[1], at, offsets.itemsize, 2)
        first, stop = offsets[at].astype(np.int64), offsets[at + 1].astype(np.int64)
        if pa.types.is_list(column.type):
            counts = stop - first
            steps = np.arange(counts.sum())
            yield from _places(column.values, np.repeat(first - np.cumsum(counts) + counts, counts) + steps)
        elif buffers[2] is not None:
            yield buffers[2].address + first, buffers[2].address + stop


def _bytes(buffer: Any, at: RowNumbers, width: int, count: int = 1) -> Spans:
    first = buffer.address + at * width
    return first, first + count * width


# -- numbers of ids -----------------------------------------------------------------------------------------


def numbers_of(ids: Sequence[str]) -> Numbers:
    """A number for each id, equal for equal ids, (ids,)."""
    texts = [id.encode("utf-8", "surrogatepass") for id in ids]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return _numbers(np.frombuffer(b"".join(texts), np.uint8), offsets)


def numbers_of_column(ids: pa.Array[Any]) -> Numbers:
    """The same of a column, (rows,)."""
    import pyarrow as pa

    buffers: list[Any] = ids.buffers()
    _, offsets, data = buffers
    # `cast` would load pyarrow.compute, which takes longer than this
    width = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    ends = np.frombuffer(offsets or b"\0" * 4, width)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    return _numbers(np.frombuffer(data or b"", np.uint8), ends)


def _numbers(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Numbers:
    """Words of eight bytes mixed one after the other, by the last step of splitmix64; these numbers stand on disk."""
    lengths = np.diff(offsets)
    found = np.empty(len(lengths), np.uint64)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():  # `unique` would load numpy.ma
        mine = np.flatnonzero(lengths == length)
        for part in np.array_split(mine, len(mine) // 65_536 + 1):
            words = np.zeros((len(part), -(-length // 8) * 8), np.uint8)
            words[:, :length] = data[offsets[part][:, None] + np.arange(length)]
            mixed = np.full(len(part), length, np.uint64)
            for word in words.view("<u8").T:
                mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)  # modulo 2**64, as arrays do
                mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                mixed ^= mixed >> np.uint64(31)
            found[part] = mixed
    return found


# -- writing ------------------------------------------------------------------------------------------------


def complete(gallery: Path, progress: Progress = no_progress, look: LookAtFiles = damaged_at_a_glance) -> int:
    """Write the files that shards lack; how many shards got some. Raises OSError on a full disk."""
    shards = [shard for shard in disk.shard_paths(gallery) if _fits(shard)]
    lacking = [s for s in shards if look(s, disk.ROW_STORE) or open_rows(s) is None or open_ids(s) is None]
    for done, shard in enumerate(lacking):
        progress("writing facts by row", done, len(lacking))
        write_row_store(shard)
    return len(lacking)


def _fits(shard: Path) -> bool:
    try:
        return items_table.count_items(shard) <= MOST
    except Damaged:  # as of an import, which no run writes again
        return False


def write_row_store(shard: Path) -> None:
    """Both files of a shard, from its table of facts, which has a digest."""
    import pyarrow as pa

    source = sound_digests(shard).get(disk.ITEMS)
    table = items_table.read_items(shard) if source else None
    if source is None or table is None or not len(table):
        return
    columns = [_column(table.column(at)) for at in range(table.num_columns)]
    _write(shard / ROWS, pa.RecordBatch.from_arrays(columns, names=table.column_names), source)
    numbers, rows = IdIndex.of(columns[table.column_names.index("id")])
    batch = pa.RecordBatch.from_arrays([_array(numbers), _array(rows)], names=["number", "row"])
    _write(shard / IDS, batch, source)


def _array(numbers: NDArray[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    # pa.array would load pandas, where it is installed
    kind: Any = {"uint64": pa.uint64(), "uint32": pa.uint32(), "int64": pa.int64()}[numbers.dtype.name]
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers).data)])


def _column(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """A column in one piece; texts that repeat as a dictionary with the smallest numbers that it needs."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        if column.nbytes > _TEXT:
            return column.cast(pa.large_string()).combine_chunks()
        encoded: Any = column.combine_chunks().dictionary_encode()
        if len(encoded.dictionary) * REPEATED <= len(column):
            width = next(width for width in (8, 16, 32) if len(encoded.dictionary) < 1 << (width - 1))
            kind: Any = {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}[width]
            return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind), encoded.dictionary)
    return column.combine_chunks()


def _write(place: Path, batch: pa.RecordBatch, source: str) -> None:
    import pyarrow as pa

    batch = batch.replace_schema_metadata({_SOURCE: source.encode()})
    with new_digested(place) as file, pa.ipc.new_file(cast("pa.NativeFile", file), batch.schema) as writer:
        writer.write_batch(batch)
