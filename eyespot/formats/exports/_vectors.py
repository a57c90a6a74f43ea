"""Arrays of vectors with a table beside each, row for row, in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exported import Chunk
    from eyespot.formats.exporting import ExportRows


class VectorLayout(Protocol):
    """How a format lays out its files; `{}` in their names is a part's number."""

    vectors: str
    table: str
    part_rows: int

    def columns(self, facts: pa.Table) -> pa.Table:
        """The format's own columns."""
        ...


def write_parts(rows: ExportRows, folder: Path, layout: VectorLayout) -> int:
    """All rows in parts; how many."""
    total, size = len(rows), layout.part_rows
    parts = -(-total // size)
    for number, pieces in groupby(_cut(rows.chunks(), size), key=lambda piece: piece[0]):
        name = str(number).zfill(len(str(parts - 1)))
        chunks = (chunk for _, chunk in pieces)
        _write_part(rows, folder, layout, (name, min(size, total - number * size)), chunks)
    return total


def _cut(chunks: Iterator[Chunk], part_rows: int) -> Iterator[tuple[int, Chunk]]:
    """Chunks cut where a part ends, each with the number of its part."""
    done = 0
    for chunk in chunks:
        at = 0
        while at < len(chunk.vectors):
            step = min(len(chunk.vectors) - at, part_rows - done % part_rows)
            piece = slice(at, at + step)
            part = chunk._replace(
                facts=chunk.facts.slice(at, step), vectors=chunk.vectors[piece], relative=chunk.relative[piece]
            )
            yield done // part_rows, part
            at, done = at + step, done + step


def _write_part(
    rows: ExportRows, folder: Path, layout: VectorLayout, part: tuple[str, int], chunks: Iterator[Chunk]
) -> None:
    """The two files of a part, of which name and length are given."""
    import pyarrow.parquet as pq

    from eyespot.gallery import arrays

    name, length = part
    paths, first = [folder / file.format(name) for file in (layout.vectors, layout.table)], next(chunks)
    with ExitStack() as files:
        for path in paths:
            path.parent.mkdir(exist_ok=True)
        vectors, table = (files.enter_context(path.open("wb")) for path in paths)
        writer = files.enter_context(pq.ParquetWriter(table, layout.columns(first.facts).schema))
        arrays.begin(vectors, (length, rows.view.space.dim), rows.dtype)
        for chunk in chain([first], chunks):
            writer.write_table(layout.columns(chunk.facts))
            arrays.append(vectors, chunk.vectors.astype(rows.dtype))
