"""Tables of delimited text as spreadsheets and field programs write them: with commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO

MAX_FIELD = 1 << 20

DelimitedRow = tuple[int, dict[str, str] | str]
"""A line, and its fields by name or what is wrong with it."""


def read_delimited(file: IO[str]) -> tuple[list[str], Iterator[DelimitedRow]]:
    """The names of the columns, and the rows below them, one at a time.

    The header decides what separates fields, or a line `sep=;` above it, as Excel writes one.
    """
    csv.field_size_limit(MAX_FIELD)
    header, above = file.readline(), 1
    delimiter = max(",;\t", key=header.count)
    if header.lower().startswith("sep="):
        delimiter, header, above = header[4:5], file.readline(), 2
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    return names, _rows(file, names, delimiter, above)


def _rows(file: IO[str], names: list[str], delimiter: str, above: int) -> Iterator[DelimitedRow]:
    reader = csv.reader(file, delimiter=delimiter)
    for row in filter(None, reader):
        line = reader.line_num + above
        if len(row) == len(names):
            yield line, dict(zip(names, row, strict=True))
        else:
            yield line, f"has {len(row)} fields where the header has {len(names)}"
