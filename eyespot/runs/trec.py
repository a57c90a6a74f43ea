"""TREC files: `query Q0 image rank score tag` for runs, `query 0 image grade` for qrels.

A ranking is by descending score, equal scores in the order of the file; the column of ranks is not believed, as
trec_eval does not believe it. Fields are split at tabs where the line has tabs, else at white space: ids with spaces
survive in lines with tabs, and as the image of a line that has all its columns. `Q0` and the tag may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import data_of, decoded, refuse
from eyespot.types import IdColumn, Qrels, Run, UsageError

RUN_LINE = "expected: query Q0 image rank score tag"
QRELS_LINE = "expected: query 0 image grade"
CHUNK = 1 << 16
LARGE = 1 << 20  # bytes; a smaller file is read in a loop before pyarrow's reader is loaded
BLOCK = 1 << 20  # bytes for one thread
BLANKS = " \t\r"
T = TypeVar("T")
ThreeColumns: TypeAlias = tuple[IdColumn, IdColumn, NDArray[Any]]  # query, image, score or grade of each row


def read_run(path: Path) -> Run:
    """A run; `UsageError` names file, line and what was expected there."""
    data = data_of(path)
    run = _whole(data, _RUN, Run.from_columns) or Run.from_columns(*_line_by_line(path, data, _RUN))
    run.header["source"] = str(path)
    return run


def read_qrels(path: Path) -> Qrels:
    """Judgements; `UsageError` names file, line and what was expected there."""
    data = data_of(path)
    qrels = _whole(data, _QRELS, Qrels.from_columns) or Qrels.from_columns(*_line_by_line(path, data, _QRELS))
    qrels.header["source"] = str(path)
    return qrels


def trec_order(run: Run) -> Run:
    """The order in which trec_eval reads a run: scores in single precision, equal ones by descending id."""
    single = run.score.astype(np.float32)  # (hits,)
    by_id = np.argsort(np.argsort(run.images))[run.codes]  # (hits,), the place of each hit's id among all ids
    queries = np.repeat(np.arange(len(run)), np.diff(run.offsets))  # (hits,)
    order = np.lexsort((-by_id, -single, queries))
    names = np.array([*run.queries, None], dtype=object)[:-1]
    made = Run.from_columns(IdColumn(names, queries[order]), IdColumn(run.images, run.codes[order]), single[order])
    made.facts, made.header, made.notes = run.facts, run.header, run.notes
    return made


def write_run(run: Run, path: Path) -> None:
    """Six columns, tab-separated if an id has a space; a query without hits has no line.

    Raises `UsageError` for ids with a tab or a line break: no line could hold them.
    """
    mark = _separator(path, [*run.queries, *run.images.tolist()])
    tag = str(run.header.get("name", "eyespot")).split() or ["eyespot"]

    def lines() -> Iterator[str]:
        for query, image, rank, score in _in_chunks(run.query, run.image, run.rank, run.score):
            yield mark.join((query, "Q0", image, str(rank), repr(score), tag[0])) + "\n"

    write_whole(path, lambda file: _write_lines(file, lines()))


def write_qrels(qrels: Qrels, path: Path) -> None:
    """Four columns, tab-separated if an id has a space; `UsageError` for ids with a tab or a line break."""
    mark = _separator(path, [*qrels.queries, *qrels.images.tolist()])
    rows = _in_chunks(qrels.query, qrels.image, qrels.grade)
    lines = (mark.join((query, "0", image, str(grade))) + "\n" for query, image, grade in rows)
    write_whole(path, lambda file: _write_lines(file, lines))


def _in_chunks(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(columns[0]), CHUNK):
        yield from zip(*(column[start : start + CHUNK].tolist() for column in columns), strict=True)


def _write_lines(file: IO[bytes], lines: Iterator[str]) -> None:
    for line in lines:
        file.write(line.encode())


def _separator(path: Path, ids: list[str]) -> str:
    for id in ids:
        if not id.strip() or id != id.strip() or len(id.splitlines()) > 1 or "\t" in id:
            raise UsageError(
                f"the id {id!r} cannot stand in the TREC file {path}: it is empty, or has a tab, a line break or "
                "outer spaces; write .parquet or .json"
            )
    return "\t" if any(len(id.split()) > 1 for id in ids) else " "


# -- reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """What sets runs and qrels apart: where the columns are, and how a value reads."""

    full: int  # how many fields a whole line has; the third of them is the image
    named: Callable[[list[str]], tuple[str, str, str] | None]  # fields of a line to query, image and value
    limit: float  # a value lies below it, and the `rule` if not
    rule: str
    expected: str
    twice: str  # what a query does to an image that it has in two lines


def _whole(data: bytes, kind: _Kind, made_of: Callable[..., T]) -> T | None:
    """A large file by the columns of pyarrow's reader; None for a small one, and if anything in it is odd.

    What is odd is read line by line, which finds the line to name.
    """
    columns = _columns(data, kind) if len(data) >= LARGE else None
    with suppress(UsageError):  # an image that a query has twice
        return made_of(*columns) if columns else None
    return None


def _columns(data: bytes, kind: _Kind) -> ThreeColumns | None:
    """The columns of a file whose lines all have every field, between single marks; else None."""
    import pyarrow as pa
    from pyarrow import csv

    mark = "\t" if b"\t" in data[:CHUNK].lstrip(b"\r\n").partition(b"\n")[0] else " "
    if mark == " " and (b"\t" in data or _has_two_blanks(data)):
        return None
    names, wanted = [str(at) for at in range(kind.full)], ["0", "2", "4" if kind.full == 6 else "3"]
    types = dict(zip(wanted, (pa.string(), pa.string(), pa.float64()), strict=True))  # query, image, value
    try:
        table = csv.read_csv(
            cast(IO[bytes], pa.BufferReader(data)),
            csv.ReadOptions(column_names=names, block_size=BLOCK),
            csv.ParseOptions(delimiter=mark, quote_char=False),
            csv.ConvertOptions(column_types=types, include_columns=wanted, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    query, image = (_ids(table[name].combine_chunks().dictionary_encode(), mark) for name in wanted[:2])
    value: NDArray[Any] = table[wanted[2]].to_numpy()  # (rows,)
    return (query, image, value) if (np.abs(value) < kind.limit).all() and query and image else None


def _has_two_blanks(data: bytes) -> bool:
    """Whether two blanks touch: piece by piece, what the processor's cache holds, an eighth of the time of `in`."""
    blank = np.empty(CHUNK + 1, np.bool_)
    whole = np.frombuffer(data, np.uint8)
    for start in range(0, len(whole), CHUNK):
        piece = whole[start : start + CHUNK + 1]
        found = np.equal(piece, ord(" "), out=blank[: len(piece)])
        if (found[1:] & found[:-1]).any():
            return True
    return False


def _ids(column: Any, mark: str) -> IdColumn | None:
    """Ids of a file; None if one is empty, or has blanks around it that a line's reader takes away."""
    ids = column.dictionary.to_numpy(zero_copy_only=False)
    padded = mark == "\t" and any(id.strip(BLANKS) != id for id in ids.tolist())
    return None if padded or (ids == "").any() else IdColumn(ids, column.indices.to_numpy())


def _line_by_line(path: Path, data: bytes, kind: _Kind) -> ThreeColumns:
    rows: dict[tuple[str, str], float] = {}
    for number, line in enumerate(decoded(path, data).split("\n"), 1):
        if not line.strip(BLANKS):
            continue
        query, image, value = _read(path, number, line.strip("\r"), kind)
        if (query, image) in rows:
            refuse(path, f"line {number}", f"query {query!r} {kind.twice} image {image!r} twice; keep one of the two")
        rows[query, image] = value
    if kind is _RUN and len(rows) > 1 and {image for _, image in rows} == {"0"}:
        refuse(path, "", f"has judgements, `query 0 image grade`, and no ranking; {kind.expected}")
    values = np.array(list(rows.values()), np.float64)  # (rows,)
    return IdColumn.of(query for query, _ in rows), IdColumn.of(image for _, image in rows), values


def _read(path: Path, number: int, line: str, kind: _Kind) -> tuple[str, str, float]:
    if "\t" in line.strip(BLANKS):
        fields = [field.strip(BLANKS) for field in line.rstrip(BLANKS).split("\t")]
    else:
        fields = [field for field in line.strip(BLANKS).split(" ") if field]
        if len(fields) > kind.full and (_q0(fields) or fields[1].isdecimal()):  # the image takes the surplus
            after = kind.full - 3
            fields = [*fields[:2], " ".join(fields[2:-after]), *fields[-after:]]
    named = kind.named(fields)
    if named is None or not all(named):
        refuse(path, f"line {number}", f"has {len(fields)} fields, {line.strip()[:60]!r}; {kind.expected}")
    try:
        value = math.nan if "_" in named[2] else float(named[2])
    except ValueError:
        value = math.nan
    if not abs(value) < kind.limit:
        refuse(path, f"line {number}", f"has {named[2]!r} where {kind.rule}; {kind.expected}")
    return named[0], named[1], value


def _q0(fields: list[str]) -> bool:
    return len(fields) > 1 and fields[1].upper() == "Q0"


def _run_fields(fields: list[str]) -> tuple[str, str, str] | None:
    """query, image and score of a line with all six fields, without its tag, without Q0, or without both."""
    marked = len(fields) == 6 or _q0(fields)
    if len(fields) - marked not in (4, 5):
        return None
    return (fields[0], fields[2], fields[4]) if marked else (fields[0], fields[1], fields[3])


_RUN = _Kind(
    full=6, named=_run_fields, limit=math.inf, rule="a score must be a finite number", expected=RUN_LINE, twice="ranks"
)
_QRELS = _Kind(
    full=4,
    named=lambda fields: (fields[0], fields[-2], fields[-1]) if len(fields) in (3, 4) else None,
    limit=2**31,
    rule="a grade must be a number below 2,147,483,648",
    expected=QRELS_LINE,
    twice="judges",
)
