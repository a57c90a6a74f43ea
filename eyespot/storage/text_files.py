"""Files that people give, texts, JSON and TOML: gzipped or not, UTF-8, bounded; errors name the file and the line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import IO, Any, NoReturn

import tomli_w

from eyespot.types import UsageError

EXPANSION = 100  # times its size that a gzipped file may unfold to: rankings reach 20, a bomb 1,000
ALLOWANCE = 64 << 20  # bytes that a gzipped file may unfold to, however small it is
LONGEST_LINE = 1 << 24  # characters
SMALL = 1 << 22  # bytes of a file of settings
KEY = re.compile(r"""(?<![\w-])(?:(?:"[^"\n]*"|'[^'\n]*'|[\w-]+)\s*\.\s*){100}""")  # slow: parts squared


def refuse(path: Path, where: str, reason: str) -> NoReturn:
    """`UsageError` that names file and place: "run.txt, line 3: has 2 fields; expected …"."""
    raise UsageError(f"{path}{', ' if where else ''}{where}: {reason}")


def holds_something(place: Path) -> bool:
    """Whether a file has bytes, or a folder entries: a download that was cut may leave neither."""
    return any(place.iterdir()) if place.is_dir() else place.exists() and place.stat().st_size > 0


def data_of(path: Path, most: int | None = None) -> bytes:
    """A file's bytes, unzipped if it is gzipped; `UsageError` if it is not there or has more than `most`."""
    try:
        with path.open("rb", buffering=0) as file:  # a buffer would cost a second copy of a large file
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed or most is None:
                return _unpacked(path, file) if packed else file.readall()
            with io.BufferedReader(file) as whole:
                data = whole.read(most + 1)
            if len(data) > most:
                refuse(path, "", f"has more than {most:,} bytes; name a file of settings or a prompt")
            return data
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


def lines_of(file: IO[str]) -> Iterator[str]:
    """The lines of a text; `csv.Error` for one of more than `LONGEST_LINE` characters."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise csv.Error(f"has a line of more than {LONGEST_LINE:,} characters")
        yield line


def text_of(path: Path, most: int | None = None) -> str:
    """A file's text without its byte order mark; `UsageError` names the line that is not UTF-8."""
    return decoded(path, data_of(path, most))


def decoded(path: Path, data: bytes) -> str:
    """The same of the file's bytes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refuse(path, f"line {line}", "is not UTF-8; save the file as UTF-8")


# -- JSON: distinct keys and finite numbers; TOML; ids ------------------------------------------------------------


def json_of(path: Path) -> Any:
    """A JSON file's value; `UsageError` for bad JSON, a key that stands twice in one object, and NaN."""
    text = text_of(path)
    try:
        return json.loads(text, object_pairs_hook=distinct_keys, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        refuse(path, f"line {error.lineno}", f"is not JSON ({error.msg})")
    except RecursionError:
        refuse(path, "", "is nested too deeply for JSON of rankings")
    except ValueError as error:
        refuse(path, "", str(error))


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ValueError(f"has the key {twice!r} twice in one object; keep one of the two")
    return fields


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which ranks nothing; write finite numbers")


def toml_of(path: Path) -> dict[str, Any]:
    """What a TOML file says; `UsageError` if it is not there or is none."""
    text = text_of(path, SMALL)
    try:
        if KEY.search(text):
            raise ValueError("a key of more than a hundred parts")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, of a number of too many digits, of brackets
        raise UsageError(f"{path} cannot be read as TOML ({error}); fix the file") from None


def toml_text(values: Mapping[str, Any]) -> str:
    """Texts, numbers, lists and tables as TOML. What is None has no form there and is left out, also within lists."""
    return tomli_w.dumps(_without_none(values))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value if one is not None]
    return value


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
