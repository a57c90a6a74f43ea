"""Opening files that others wrote, and putting whole ones in place: gzipped or not, UTF-8, bounded, named in errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any, NoReturn

from eyespot.storage.atomic import new_file, new_folder
from eyespot.types import UsageError

EXPANSION = 100  # times its size that a gzipped file may unfold to: rankings reach 20, a bomb 1,000
ALLOWANCE = 64 << 20  # bytes that a gzipped file may unfold to, however small it is
MAX_FIELD = 1 << 24
ACTIVE = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")  # the first signs of what a spreadsheet may run as a formula

Row = tuple[int, dict[str, Any]]  # its line (in parquet: its row, from 1) and its fields


def refuse(path: Path, where: str, reason: str) -> NoReturn:
    """`UsageError` that names file and place: "run.txt, line 3: has 2 fields; expected …"."""
    raise UsageError(f"{path}{', ' if where else ''}{where}: {reason}")


def holds_something(place: Path) -> bool:
    """Whether a file has bytes, or a folder entries: a download that was cut may leave neither."""
    if place.is_dir():
        return next(place.iterdir(), None) is not None
    return place.exists() and place.stat().st_size > 0


def data_of(path: Path) -> bytes:
    """A file's bytes, unzipped if it is gzipped; `UsageError` if it is not there or unfolds beyond all measure."""
    try:
        with path.open("rb", buffering=0) as file:  # a buffer would cost a second copy of a large file
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _unpacked(path, file) if packed else file.readall()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder; name the file in it, or its layout with --format") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}); fetch or unpack it again") from None


def _unpacked(path: Path, file: FileIO) -> bytes:
    limit = ALLOWANCE + EXPANSION * path.stat().st_size
    with gzip.open(file) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise UsageError(f"{path} unfolds to more than {EXPANSION} times its size; unpack it yourself if you trust it")
    return data


def text_of(path: Path) -> str:
    """A file's text without its byte order mark; `UsageError` names the line that is not UTF-8."""
    return decoded(path, data_of(path))


def decoded(path: Path, data: bytes) -> str:
    """The same of the file's bytes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refuse(path, f"line {line}", "is not UTF-8; save the file as UTF-8")


def json_of(path: Path) -> Any:
    """A JSON file's value; `UsageError` for bad JSON, a key that stands twice in one object, and NaN."""
    text = text_of(path)
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        refuse(path, f"line {error.lineno}", f"is no JSON ({error.msg})")
    except RecursionError:
        refuse(path, "", "is nested too deeply for JSON of rankings")
    except ValueError as error:
        refuse(path, "", str(error))


def toml_of(path: Path) -> dict[str, Any]:
    """What a TOML file says; `UsageError` if it is not there or is none."""
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} cannot be read as TOML ({error}); fix the file") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ValueError(f"has the key {twice!r} twice in one object; keep one of the two")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which ranks nothing; write finite numbers")


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
        refuse(path, f"line {reader.line_num}", f"is no CSV ({error})")


def _json_lines(path: Path, _wanted: set[str] | None) -> Iterator[Row]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line, object_pairs_hook=_distinct, parse_constant=_no_constant)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                refuse(path, f"line {number}", "is no JSON object with distinct keys and finite numbers")
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
        refuse(path, "", f"is no parquet file ({error})")
    with file:
        yield file


def id_of(value: Any) -> str | None:
    """An id as text: what is a string or a whole number and not empty; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def required(path: Path, line: int, row: dict[str, Any], *names: str) -> str:
    """The id that stands in the first of these columns that is there; `UsageError` names file and line."""
    name = next((name for name in names if name in row), None)
    if name is None:
        refuse(path, f"line {line}", f"has no column {names[0]}; there are: {', '.join(row) or 'none'}")
    id = id_of(row[name])
    if id is None:
        refuse(path, f"line {line}", f"has {row[name]!r} as {name}; expected an id")
    return id


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


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Put a file in place only once it is whole and on the disk; gzipped if its name ends in .gz."""
    try:
        with new_file(path) as file:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    write(packed)  # type: ignore[arg-type]
            else:
                write(file)
    except FileNotFoundError:
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to; make it first") from None


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends well; `UsageError` if the name is taken."""
    out = out.absolute()
    _refuse_taken(out)
    with new_folder(out) as building:
        yield building
        _refuse_taken(out)  # another run may have filled it meanwhile


def _refuse_taken(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already and not empty; name a new folder")
