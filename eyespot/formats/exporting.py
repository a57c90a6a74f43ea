"""What every export writes: the chosen rows of a gallery with their facts, and their pictures where they can be read.

Nothing here loads pyarrow or numpy before rows are read, so that the help of the command line stays instant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.photos.names import shown_name
from eyespot.types import NothingFound, Progress, UsageError, no_progress

if TYPE_CHECKING:
    from pathlib import Path

    from eyespot.formats.exported import Chunk, ExportColumns
    from eyespot.formats.exports._pictures import PictureFile
    from eyespot.gallery.view import View
    from eyespot.runs.judged import JudgedQueries
    from eyespot.types import Mask


@dataclass(frozen=True)
class LabelTask:
    """A picture that is labelled for a query: y, n or d for doubt by each person."""

    query: str
    text: str
    image: str
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportOptions:
    """What an export is asked for; a format follows those that its `OPTIONS` name.

    `chosen` (rows,) is True for wanted rows, None for all; `category` and `split` name columns; `pictures` puts them
    into tables; `images_at` is the address below which the pictures are served; `judged` are queries and judgements,
    `tasks` photos that people label for queries.
    """

    all_columns: bool = False
    chosen: Mask | None = None
    float16: bool = False
    pictures: bool = False
    category: str | None = None
    split: str | None = None
    images_at: str | None = None
    shard_rows: int = 10_000
    judged: JudgedQueries | None = None
    tasks: Sequence[LabelTask] = ()
    progress: Progress = no_progress


class ExportFailure(NamedTuple):
    """A picture that is not in an export, and why."""

    id: str
    path: str
    reason: str


class ExportRow(NamedTuple):
    """A picture: its facts as plain values, the id among them, where it may lie, and its vector (dim,).

    `relative` is its first path from the root that was indexed.
    """

    facts: dict[str, Any]
    places: list[str]
    vector: Any
    relative: str

    @property
    def id(self) -> str:
        """The gallery's id."""
        return str(self.facts["id"])


class ExportReport(NamedTuple):
    """What was written, columns that were not, pictures that could not be, how many changed their format, and notes."""

    rows: int
    left_out: list[str]
    failed: list[ExportFailure]
    converted: int
    notes: list[str]


@dataclass
class ExportRows:
    """The chosen rows of a space; reading their pictures fills `failed` and counts `converted`."""

    view: View
    options: ExportOptions
    failed: list[ExportFailure] = field(default_factory=list)
    converted: int = 0
    notes: list[str] = field(default_factory=list)

    @cached_property
    def wanted(self) -> Mask:
        """True for the rows that go out, (rows,); `NothingFound` if there are none."""
        from eyespot.formats.exported import wanted_rows

        return wanted_rows(self.view, self.options.chosen)

    @cached_property
    def columns(self) -> ExportColumns:
        """The columns that go out."""
        from eyespot.formats.exported import columns_of

        return columns_of(self.view, self.options.all_columns)

    @cached_property
    def dtype(self) -> Any:
        """The type of the vectors that go out."""
        import numpy as np

        from eyespot.formats.exported import dtype_of

        return np.dtype(np.float16) if self.options.float16 else dtype_of(self.view)

    def __len__(self) -> int:
        return int(self.wanted.sum())

    def chunks(self) -> Iterator[Chunk]:
        """Facts as tables, with vectors, some thousand rows at a time."""
        from eyespot.formats.exported import chunks_of

        done = 0
        for chunk in chunks_of(self.view, self.columns, self.wanted):
            yield chunk
            done += len(chunk.vectors)
            self.options.progress("exporting", done, len(self))

    def __iter__(self) -> Iterator[ExportRow]:
        for done, row in enumerate(self._rows(), 1):
            yield row
            self.options.progress("exporting", done, len(self))

    def _rows(self) -> Iterator[ExportRow]:
        from eyespot.formats.exported import chunks_of

        for chunk in chunks_of(self.view, self.columns, self.wanted):
            for facts, vector, relative in zip(chunk.facts.to_pylist(), chunk.vectors, chunk.relative, strict=True):
                yield ExportRow(facts, facts.pop("paths"), vector, relative)

    def pictures(self, ids: Collection[str] = ()) -> Iterator[tuple[ExportRow, PictureFile]]:
        """The rows whose picture can be read, with its bytes as they go out; the others are added to `failed`.

        ids: only these pictures; all without any.
        """
        from eyespot.formats.exports._pictures import picture_of

        for row in self:
            if ids and row.id not in ids:
                continue
            got = picture_of(row.places, bare=not self.options.all_columns)
            if isinstance(got, str):
                self.failed.append(ExportFailure(row.id, shown_name(row.places[0]) if row.places else "", got))
            else:
                self.converted += got.converted
                yield row, got

    def judged(self, corpus: Collection[str]) -> JudgedQueries:
        """The queries with a judgement of a picture that is in the corpus, and these judgements; a note counts others.

        `NothingFound` if there are none; `UsageError` if the options have no judgements.
        """
        from eyespot.runs.judged import JudgedQueries
        from eyespot.types import Qrels

        given, there = self.options.judged, set(corpus)
        if given is None:
            raise UsageError("this format needs judgements; pass them as ExportOptions(judged=…)")
        grades = {
            query: {image: grade for image, grade in given.qrels[query].items() if image in there}
            for query in given.qrels
        }
        judgements = {query: images for query, images in grades.items() if images}
        if not judgements:
            raise NothingFound("no judgement is about a picture that is exported; judge some, or widen the filter")
        if lost := len(given.qrels.grade) - sum(map(len, judgements.values())):
            self.notes.append(f"{lost} judgements are about pictures that are not exported, and are left out")
        return JudgedQueries({query: given.queries.get(query, {}) for query in judgements}, Qrels(judgements))

    def column(self, name: str) -> str:
        """A column that goes out, however it is spelled; `UsageError` if it does not."""
        spelled = {column.lower(): column for column in self.columns.schema.names if column != "paths"}
        if name.lower() in spelled:
            return spelled[name.lower()]
        if name.lower() in {column.lower() for column in self.columns.left_out}:
            raise UsageError(f"the column {name} tells where or whose pictures are; --all-columns exports it")
        raise UsageError(f"the gallery has no column {name}; there are: {', '.join(sorted(spelled.values()))}")


def export(view: View, write: Callable[[ExportRows, Path], int], out: Path, options: ExportOptions) -> ExportReport:
    """Write the chosen rows of a space into a folder that is whole or not there at all.

    Raises `UsageError` if the folder holds something, `NothingFound` if there is nothing to write.
    """
    from eyespot.storage.atomic import is_forbidden, whole_folder
    from eyespot.types import EyespotError

    rows = ExportRows(view, options)
    if not len(rows):  # which reads the gallery before a folder is made
        raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
    try:
        with whole_folder(out) as folder:
            written = write(rows, folder)
            if not written:
                first = rows.failed[0]
                raise NothingFound(f"no picture could be read, such as {first.path or first.id}: {first.reason}")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        way_out = "name another folder" if is_forbidden(error) else "make room there or name another folder"
        raise EyespotError(f"cannot write {out} ({reason}); {way_out}") from error
    return ExportReport(written, rows.columns.left_out, rows.failed, rows.converted, rows.notes)


CAPTIONS = ("caption", "title", "text")


def caption_column(rows: ExportRows) -> str | None:
    """The column that says in words what a picture shows."""
    spelled = {name.lower(): name for name in reversed(rows.columns.schema.names)}
    return next((spelled[name] for name in CAPTIONS if name in spelled), None)


def plain(value: Any) -> Any:
    """A fact as JSON has it: times in ISO 8601, infinities and NaN as null."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def known_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that say something, as JSON has them."""
    return {name: plain(value) for name, value in facts.items() if value is not None}
