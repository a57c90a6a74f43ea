"""Label tables in parquet: their plain columns in the forms that JSON has; pictures inside the file are not read.

Datasets of Hugging Face keep `image` as a struct of bytes and path: its path then names the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

_pc: Any = pyarrow.compute
_Column: TypeAlias = Any
_BATCH = 4096
_BUFFER = 1 << 20  # of a column that is being read; without it a column's whole chunk would be


def columns_of(place: Path) -> dict[str, str]:
    """The plain columns, and what is read for each: its own name, or `image.path` for a struct with a path.

    Raises ValueError for a file that is no parquet.
    """
    with _readable(), pq.ParquetFile(place) as file:
        schema = file.schema_arrow
    first = [schema.field(at) for at, name in enumerate(schema.names) if schema.names.index(name) == at]
    return {field.name: read for field in first if (read := _read_as(field)) is not None}


def rows_of(place: Path, columns: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every row, of these columns only."""
    with _readable(), pq.ParquetFile(place, buffer_size=_BUFFER) as file:
        for batch in file.iter_batches(_BATCH, columns=list(columns.values())):
            values = [_plain(batch.column(batch.schema.names.index(name))).to_pylist() for name in columns]
            yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _read_as(field: pa.Field[Any]) -> str | None:
    kind: Any = field.type
    if pa.types.is_struct(kind):
        at = kind.get_field_index("path")
        return f"{field.name}.path" if at >= 0 and _is_text(kind.field(at).type) else None
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return field.name if _is_text(value) or any(test(value) for test in _PLAIN) else None


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


_MOMENTS: tuple[Callable[[Any], bool], ...] = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
_PLAIN = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, *_MOMENTS)


def _plain(column: _Column) -> _Column:
    """Text, numbers and truth values; moments in the form of ISO 8601."""
    if pa.types.is_struct(column.type):
        return _plain(column.field(0))
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    if pa.types.is_decimal(column.type) or pa.types.is_floating(column.type):
        return column.cast(pa.float64(), safe=False)
    if any(test(column.type) for test in _MOMENTS):
        text = _pc.replace_substring(column.cast(pa.string()), " ", "T")
        return _pc.replace_substring_regex(text, r"\.0+(Z|[+-]\d{4})?$", r"\1")
    return column
