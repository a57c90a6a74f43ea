"""Tables as csv, tsv, jsonl and parquet. No text acts as a formula in a spreadsheet, and reading gives it back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import distinct_keys, no_constant, refuse, text_of
from eyespot.types import UsageError

MAX_FIELD = 1 << 24
ACTIVE = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")  # the first signs of what a spreadsheet may run as a formula

Row = tuple[int, dict[str, Any]]  # its line (in parquet: its row, from 1) and its fields


def rows_of(path: Path, columns: Iterable[str] | None = None) -> Iterator[Row]:
    """Rows of a csv, tsv, jsonl or parquet table with their lines; `columns` names the only ones wanted."""
    wanted = None if columns is None else set(columns)
    name = path.name.lower().removesuffix(".gz")
    reader = _json_lines if name.endswith(".jsonl") else _parquet if name.endswith(".parquet") else _csv
    for line, row in reader(path, wanted):
        yield line, row if wanted is None else {name: value for name, value in row.items() if name in wanted}


def _csv(path: Path, _wanted: set[str] | None) -> Iterator[Row]:
    csv.field_size_limit(MAX_FIELD)
    # a lone carriage return ends no line here, as in every other reader of this room
    lines = [line.rstrip("\r") + "\n" for line in text_of(path).split("\n")]
    tabbed = "\t" in lines[0]
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabbed else csv.reader(lines)
    text_in = str if tabbed else unescape_cell
    try:
        names = [text_in(name.strip()) for name in next(reader, [])]
        for row in reader:
            if row:
                if len(row) != len(names):
                    refuse(path, f"line {reader.line_num}", f"has {len(row)} fields where the header has {len(names)}")
                yield reader.line_num, dict(zip(names, (text_in(field.strip()) for field in row), strict=True))
    except csv.Error as error:
        refuse(path, f"line {reader.line_num}", f"is not CSV ({error})")


def _json_lines(path: Path, _wanted: set[str] | None) -> Iterator[Row]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line, object_pairs_hook=distinct_keys, parse_constant=no_constant)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                refuse(path, f"line {number}", "is not a JSON object with distinct keys and finite numbers")
            yield number, row


def _parquet(path: Path, wanted: set[str] | None) -> Iterator[Row]:
    import pyarrow as pa

    with opened_parquet(path) as file:
        names = [name for name in file.schema_arrow.names if wanted is None or name in wanted]
        row = 0
        try:
            for batch in file.iter_batches(batch_size=4096, columns=names):
                for fields in batch.to_pylist():
                    row += 1
                    yield row, fields
        except (pa.ArrowException, OSError) as error:
            refuse(path, "", f"cannot be read to its end ({error})")


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """A parquet file; `UsageError` if it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (pa.ArrowException, OSError) as error:
        refuse(path, "", f"is not a parquet file ({error})")
    with file:
        yield file


def escape_cell(value: Any) -> Any:
    """A value for a cell; a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and ACTIVE.match(value) else value


def unescape_cell(text: str) -> str:
    """The text of a cell that `escape_cell` made; `rows_of` reads every CSV so."""
    return text[1:] if text.startswith("'") and ACTIVE.match(text) else text


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Rows for people and for `rows_of`, whole or not at all; no text acts as a formula in a spreadsheet."""

    def write(file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, "utf-8", "surrogatepass", newline="")
        csv.writer(text, lineterminator="\n").writerows([escape_cell(value) for value in row] for row in rows)
        text.detach()  # flushes, and leaves the file open

    write_whole(path, write)


def csv_bytes(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A table of these columns in UTF-8, with the line ends of RFC 4180; no text acts as a formula in a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([escape_cell(name) for name in names])
    writer.writerows([escape_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
