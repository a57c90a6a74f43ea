"""Large TREC files, read without a Python object for each hit: compiled scans that note where ids lie in the file.

Ids become text when somebody asks for them. The grades of a run's hits are found by comparing bytes, one query at a
time, so that scoring a file of ten million lines makes ten million comparisons and no string. Importing this file
imports numba.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics
# (numba's own types tell nothing about what a kernel takes; the comments here do)

from __future__ import annotations

import codecs
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.runs import in_order
from eyespot.runs import scanning as kernels
from eyespot.types import IdColumn, Qrels, Run

CHUNK = 16 << 20  # bytes for one thread
HEAD = 1 << 16  # bytes in which the first line ends
LONGEST = 400  # bytes from an image to the end of its value


class Spans(NamedTuple):
    """Rows of a file: where each image's id lies, its hash, and its value."""

    data: NDArray[np.uint8]  # (bytes,)
    place: NDArray[np.int64]  # (rows,) where the id starts
    length: NDArray[np.int32]  # (rows,) of the id, bytes
    hash: NDArray[np.uint64]  # (rows,)
    value: NDArray[np.float64]  # (rows,)

    def taken(self, rows: NDArray[np.integer[Any]]) -> Spans:
        """These rows in this order."""
        columns: list[Any] = [column[rows] for column in self[1:]]
        return Spans(self.data, *columns)


class Stretches(NamedTuple):
    """Rows of one query that stand together: the first of them, and where the query's id lies."""

    first: NDArray[np.int64]  # (stretches,)
    place: NDArray[np.int64]  # (stretches,)
    length: NDArray[np.int32]  # (stretches,) bytes


class _Scanned:
    """Rows whose ids lie in the file, until somebody asks for them."""

    spans: Spans
    offsets: NDArray[np.int64]

    def _lay(self, queries: list[str], offsets: NDArray[np.int64], spans: Spans) -> None:
        self.queries, self.offsets, self.spans = queries, offsets, spans
        self._at = {query: at for at, query in enumerate(queries)}

    def _coded(self) -> IdColumn:
        import pyarrow as pa

        spans = self.spans
        text, bounds = in_order.gathered(spans.data, spans.place, spans.length)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
        ids = pa.Array.from_buffers(pa.large_string(), len(spans.length), buffers).dictionary_encode()
        return IdColumn(ids.dictionary.to_numpy(zero_copy_only=False), ids.indices.to_numpy())


class ScannedQrels(_Scanned, Qrels):
    """Judgements whose ids lie in a file."""

    def __init__(self, queries: list[str], offsets: NDArray[np.int64], spans: Spans) -> None:
        self._lay(queries, offsets, spans)
        self.grade = spans.value.astype(np.int32)
        self.header = {}


class ScannedRun(_Scanned, Run):
    """Rankings whose ids lie in a file."""

    def __init__(self, queries: list[str], offsets: NDArray[np.int64], spans: Spans) -> None:
        self._lay(queries, offsets, spans)
        self.score = spans.value
        self.facts, self.header, self.notes = {}, {}, []

    def graded(self, qrels: Qrels) -> NDArray[np.int32]:
        at = np.array([qrels._at.get(query, -1) for query in self.queries], dtype=np.int64)  # (queries,)
        ours = self.spans
        if isinstance(qrels, ScannedQrels):
            theirs = qrels.spans
        else:
            ids = [
                image.encode(errors="surrogatepass") for image in qrels.images.tolist()
            ]  # what no file holds, none matches
            data = np.frombuffer(b"".join(ids), np.uint8)
            length = np.fromiter(map(len, ids), np.int32, len(ids))  # (images,)
            place = np.cumsum(length, dtype=np.int64) - length
            once = Spans(data, place, length, kernels.hashes(data, place, length), np.zeros(len(ids)))
            theirs = once.taken(qrels.codes)._replace(value=qrels.grade.astype(np.float64))
        found: NDArray[np.int32] = kernels.grades(
            (ours.data, ours.place, ours.length, ours.hash, self.offsets),
            (theirs.data, theirs.place, theirs.length, theirs.hash, qrels.offsets),
            at,
            np.ascontiguousarray(qrels.grade),
        )
        return found


def run_in(data: bytes | NDArray[np.uint8]) -> Run | None:
    """The run of a file with six columns in every line, or None if anything in it is odd."""
    found = _segments(data, kernels.RUN_SHAPE)
    if found is None:
        return None
    queries, offsets, spans = found
    order = in_order.best_first(offsets, spans.value)
    return ScannedRun(queries, offsets, spans.taken(order) if len(order) else spans)


def qrels_in(data: bytes | NDArray[np.uint8]) -> Qrels | None:
    """The judgements of a file with four columns in every line, or None if anything in it is odd."""
    found = _segments(data, kernels.QRELS_SHAPE)
    if found is None or not np.array_equal(found[2].value, found[2].value.astype(np.int32)):
        return None
    return ScannedQrels(*found)


def _segments(
    data: bytes | NDArray[np.uint8], shape: tuple[int, int]
) -> tuple[list[str], NDArray[np.int64], Spans] | None:
    """Queries whose rows stand together, each image once; None for anything else."""
    found = _scanned(np.frombuffer(data, np.uint8), shape)
    if found is None or not _settled(found[0], shape):
        return None
    spans, (first, place, length) = found
    names = [spans.data[at : at + size].tobytes().decode() for at, size in zip(place, length, strict=True)]
    # a query that goes on in another part of the file is none anew
    changes = [at for at in range(len(names)) if at == 0 or names[at] != names[at - 1]]
    queries = [names[at] for at in changes]
    offsets = np.append(first[changes], len(spans.place)).astype(np.int64)  # (queries + 1,)
    if len(set(queries)) < len(queries):
        return None
    # Whether a query has an image twice; threads share the queries
    parts = np.linspace(0, len(offsets) - 1, _threads() + 1).astype(int)
    with ThreadPoolExecutor(_threads()) as pool:
        columns = spans[:4]
        slices = [offsets[parts[at] : parts[at + 1] + 1] for at in range(len(parts) - 1)]
        repeats = any(pool.map(lambda part: kernels.repeats(*columns, part), slices))
    return None if repeats else (queries, offsets, spans)


def _threads() -> int:
    return min(os.cpu_count() or 1, 16)


def _scanned(data: NDArray[np.uint8], shape: tuple[int, int]) -> tuple[Spans, Stretches] | None:
    """All lines, by as many threads as there are processors; None if one has not that shape or the text is no UTF-8."""
    start = 3 if data[:3].tobytes() == codecs.BOM_UTF8 else 0
    bounds = kernels.line_starts(data, start, max(1, len(data) // CHUNK))
    parts, mark = range(len(bounds) - 1), _mark(data)[0]
    with ThreadPoolExecutor(_threads()) as pool:
        counts, ascii = zip(*pool.map(lambda at: kernels.count(data, bounds[at], bounds[at + 1]), parts), strict=True)
        rows = np.concatenate([[0], np.cumsum(counts)])  # (parts + 1,)
        columns_rows = int(rows[-1])
        # Room for spans, and for as many stretches
        kinds = (np.int64, np.int32, np.uint64, np.float64, np.int64, np.int64, np.int32)
        columns = tuple(np.empty(columns_rows, kind) for kind in kinds)

        def scan(at: int) -> tuple[int, int]:
            part = tuple(column[rows[at] : rows[at + 1]] for column in columns)
            found: tuple[int, int] = kernels.scan(data, (bounds[at], bounds[at + 1]), mark, shape, part)
            return found

        filled = np.array(list(pool.map(scan, parts)))  # (parts, 2) rows and stretches
    return None if filled.min() < 0 or not (all(ascii) or _is_utf8(data)) else _joined(data, columns, rows[:-1], filled)


def _joined(
    data: NDArray[np.uint8], columns: tuple[NDArray[Any], ...], starts: NDArray[np.int64], filled: NDArray[np.int64]
) -> tuple[Spans, Stretches]:
    """What the parts of a file filled of the columns, without the room that they left."""
    before = np.cumsum(filled[:, 0]) - filled[:, 0]  # (parts,) rows
    ahead = [np.arange(start, start + count) for start, count in zip(starts, filled[:, 1], strict=True)]
    first, place, length = (column[np.concatenate(ahead)] for column in columns[4:])
    stretches = Stretches(first + np.repeat(before, filled[:, 1]), place, length)
    spans = Spans(data, *columns[:4])
    if filled[:, 0].sum() == len(spans.place):
        return spans, stretches
    rows = [np.arange(start, start + count) for start, count in zip(starts, filled[:, 0], strict=True)]
    return spans.taken(np.concatenate(rows)), stretches


def _mark(data: NDArray[np.uint8]) -> bytes:
    return b"\t" if b"\t" in data[:HEAD].tobytes().lstrip(b"\r\n").partition(b"\n")[0] else b" "


def _settled(spans: Spans, shape: tuple[int, int]) -> bool:
    """Ask Python for the numbers that the scan could not read to the last bit; False if it cannot either."""
    mark = _mark(spans.data)
    try:
        for row in np.flatnonzero(np.isnan(spans.value)).tolist():
            which = shape[1]
            # The text of a row's value, the `which`-th field of its line; ValueError if it is oddly long
            # or has a _
            end = int(spans.place[row] + spans.length[row])
            line = spans.data[end : end + LONGEST].tobytes().partition(b"\n")[0]
            fields = line.split(mark)  # the first, an empty one, ends the image, which is the third
            if b"_" in fields[which - 3] or (len(line) == LONGEST and len(fields) == which - 2):
                raise ValueError
            value_field = fields[which - 3].strip(b"\r")
            spans.value[row] = float(value_field)
    except (ValueError, IndexError):
        return False
    return bool(np.isfinite(spans.value).all())


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), CHUNK):
            decoder.decode(data[at : at + CHUNK].tobytes(), at + CHUNK >= len(data))
    except UnicodeDecodeError:
        return False
    return True
