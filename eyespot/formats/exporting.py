"""What every export writes: the chosen rows of a gallery with their facts, and their pictures where they can be read.

Who or where is left out unless it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.formats.pictures import PictureFile, picture_of
from eyespot.gallery.view import View, place_of
from eyespot.photos.names import shown_name, stored_name
from eyespot.photos.provenance import LICENCES, Attribution, attribution_of, plain_name
from eyespot.runs.judged import JudgedQueries
from eyespot.storage.atomic import trouble, whole_folder
from eyespot.types import EyespotError, Mask, NothingFound, Progress, Qrels, UsageError, no_progress, quantity

_BATCH = 1 << 14  # rows
# Compared in lower case without separators: Darwin Core, EXIF, Flickr, iNaturalist and img2dataset spell them so.
PLACES = """
    latitude longitude lat lon lng long position coordinates location locality place placeguess geotag geolocation geo
    decimallatitude decimallongitude verbatimlatitude verbatimlongitude verbatimlocality verbatimcoordinates
    positionfrom gpsdoubtful
"""
OWNERS = """
    author owner ownername photographer artist creator user username userid userlogin usernickname login uploader
    observer observerid observername recordedby identifiedby rightsholder copyright copyrightholder credit attribution
    byline email realname
"""


@dataclass(frozen=True)
class LabelTask:
    """A picture that is labelled for a query: y, n, d for doubt or None for a mark taken back, by each person.

    `dates` are in seconds since 1970, where they are known.
    """

    query: str
    text: str
    image: str
    marks: Mapping[str, str | None] = field(default_factory=dict)
    dates: Mapping[str, float] = field(default_factory=dict)


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


@dataclass(frozen=True)
class ExportFailure:
    """A picture that is not in an export, and why."""

    id: str
    path: str
    reason: str


@dataclass(frozen=True)
class ExportRow:
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


@dataclass(frozen=True)
class ExportReport:
    """What was written, columns that were not, pictures that could not be, how many changed their format, and notes."""

    rows: int
    left_out: list[str]
    failed: list[ExportFailure]
    converted: int
    notes: list[str]


@dataclass(frozen=True)
class Chunk:
    """Some rows: their facts with whole paths, their vectors (rows, dim), and the first path of each from its root."""

    facts: pa.Table
    vectors: NDArray[Any]
    relative: list[str]


class ExportRows:
    """The chosen rows of a space; reading their pictures fills `failed` and counts `converted`.

    `schema` is that of the columns that go out, `wanted` (rows,) is True for the rows that do, `dtype` is the type of
    their vectors.
    """

    def __init__(self, view: View, options: ExportOptions) -> None:
        """Raises `NothingFound` if no row goes out."""
        self.view, self.options = view, options
        self.failed: list[ExportFailure] = []
        self.converted = 0
        self.notes: list[str] = []
        if not view.live.any():
            place = view.gallery.path
            raise NothingFound(f"{place} has no pictures to export; add some with: eyespot index PHOTOS -g {place}")
        self.wanted: Mask = view.live if options.chosen is None else view.live & options.chosen
        if not self.wanted.any():
            raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
        self.schema, self.left_out, self.derived = columns_of(view, options.all_columns)
        kinds = [np.float16] if options.float16 else [block.dtype for block in view.blocks]
        self.dtype: np.dtype[Any] = np.dtype(np.result_type(*kinds))

    def __len__(self) -> int:
        return int(self.wanted.sum())

    def chunks(self) -> Iterator[Chunk]:
        """Facts as tables, with vectors, some thousand rows at a time; `paths` are whole."""
        done = 0
        for chunk in self._chunks():
            yield chunk
            done += len(chunk.vectors)
            self.options.progress("exporting", done, len(self))

    def _chunks(self) -> Iterator[Chunk]:
        masks = np.split(self.wanted, self.view.starts[1:-1])  # a mask (rows,) for each shard
        for place, block, mask in zip(self.view.tables, self.view.blocks, masks, strict=True):
            at = 0
            with pq.ParquetFile(place) as file:
                for batch in file.iter_batches(_BATCH):
                    chosen = mask[at : at + len(batch)]
                    facts = pa.Table.from_batches([batch]).filter(pa.array(chosen))
                    if len(facts):
                        first = [(paths or [""])[0] for paths in facts["paths"].to_pylist()]
                        common = self._in_common(facts)
                        yield Chunk(common, block[at : at + len(batch)][chosen], first)
                    at += len(batch)

    def _in_common(self, facts: pa.Table) -> pa.Table:
        """Facts of a shard in the columns of all."""
        roots = self.view.gallery.header.roots
        places = [
            [
                stored_name(place_of(roots[number], path))
                for number, path in zip(row["roots"], row["paths"], strict=True)
            ]
            for row in facts.select(["roots", "paths"]).to_pylist()
        ]
        made: dict[str, Any] = {"paths": pa.array(places, pa.list_(pa.string()))}
        if self.derived:
            rights = [attribution_of(row)._asdict() for row in facts.drop_columns(["roots", "paths"]).to_pylist()]
            made |= {name: pa.array([row[name] for row in rights], pa.string()) for name in self.derived}
        spelled = {name.lower(): name for name in facts.column_names}
        for one in self.schema:
            if one.name not in made:
                there = spelled.get(one.name.lower())
                made[one.name] = pa.nulls(len(facts), one.type) if there is None else facts[there].cast(one.type)
        return pa.table({name: made[name] for name in self.schema.names}, schema=self.schema)

    def __iter__(self) -> Iterator[ExportRow]:
        done = 0
        for chunk in self._chunks():
            for facts, vector, relative in zip(chunk.facts.to_pylist(), chunk.vectors, chunk.relative, strict=True):
                yield ExportRow(facts, facts.pop("paths"), vector, relative)
                done += 1
                self.options.progress("exporting", done, len(self))

    def pictures(self, ids: Collection[str] = ()) -> Iterator[tuple[ExportRow, PictureFile]]:
        """The rows whose picture can be read, with its bytes as they go out; the others are added to `failed`.

        ids: only these pictures; all without any.
        """
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
            self.notes.append(f"left out: {quantity(lost, 'judgement')} about pictures that are not exported")
        return JudgedQueries({query: given.queries.get(query, {}) for query in judgements}, Qrels(judgements))

    def column(self, name: str) -> str:
        """A column that goes out, however it is spelled; `UsageError` if it does not."""
        spelled = {column.lower(): column for column in self.schema.names if column != "paths"}
        if name.lower() in spelled:
            return spelled[name.lower()]
        if name.lower() in {column.lower() for column in self.left_out}:
            raise UsageError(f"the column {name} tells where or whose pictures are; --all-columns exports it")
        raise UsageError(f"the gallery has no column {name}; there are: {', '.join(sorted(spelled.values()))}")


def export(view: View, write: Callable[[ExportRows, Path], int], out: Path, options: ExportOptions) -> ExportReport:
    """Write the chosen rows of a space into a folder that is whole or not there at all.

    Raises `UsageError` if the folder holds something, `NothingFound` if there is nothing to write.
    """
    rows = ExportRows(view, options)  # which reads the gallery before a folder is made
    try:
        with whole_folder(out) as folder:
            written = write(rows, folder)
            if not written:
                first = rows.failed[0]
                raise NothingFound(f"no picture could be read, such as {first.path or first.id}: {first.reason}")
    except OSError as error:
        raise EyespotError(f"cannot write {out} {trouble(error, elsewhere='name another folder')}") from error
    return ExportReport(written, rows.left_out, rows.failed, rows.converted, rows.notes)


CAPTIONS = ("caption", "title", "text")


def caption_column(rows: ExportRows) -> str | None:
    """The column that says in words what a picture shows."""
    spelled = {name.lower(): name for name in reversed(rows.schema.names)}
    return next((spelled[name] for name in CAPTIONS if name in spelled), None)


def boxes_of(text: Any) -> list[tuple[str, float | None, list[float]]]:
    """The column `boxes`: kind, confidence and [x, y, width, height] in shares; none if the JSON is malformed.

    The confidence is None where it is not from 0 to 1; people who drew a box say none.
    """
    try:
        listed = json.loads(text) if isinstance(text, str) else []
        pairs = [(str(kind), float("nan" if sure is None else sure), (x, y, w, h)) for kind, sure, x, y, w, h in listed]
        return [(kind, sure if 0 <= sure <= 1 else None, [*map(float, box)]) for kind, sure, box in pairs]
    except (ValueError, TypeError):
        return []


def known_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that say something, as JSON has them: times in ISO 8601, infinities and NaN as null."""
    dates = {name: value.isoformat() for name, value in facts.items() if isinstance(value, date | datetime)}
    odd = {name: None for name, value in facts.items() if isinstance(value, float) and value - value != 0}
    return {name: value for name, value in facts.items() if value is not None} | dates | odd


# -- columns ---------------------------------------------------------------------------------------------------------


def tells_too_much(name: str) -> bool:
    """Whether a column by this name tells where a picture was taken or whose it is."""
    plain = plain_name(name)
    return plain in PLACES.split() or names_owner(name) or plain.startswith(("gps", "exif", "embedded", "sidecar"))


def names_owner(name: str) -> bool:
    """Whether a column by this name tells whose a picture is."""
    return plain_name(name) in OWNERS.split()


def columns_of(view: View, all_columns: bool = False) -> tuple[pa.Schema, list[str], list[str]]:
    """The columns of all shards that go out, a name once whatever its case; those left out tell of places and owners.

    The third are those of `Attribution` that are put together out of others: a photo with a licence is handed on with
    it and with whom it asks to name, for it may not be handed on without.
    """
    fields: dict[str, pa.Field[Any]] = {}
    for table in view.tables:
        for one in pq.read_schema(table):
            known = fields.get(one.name.lower(), one)
            wider = known.type
            if wider != one.type:
                wider = pa.float64() if {wider, one.type} == {pa.int64(), pa.float64()} else pa.string()
            fields[one.name.lower()] = known.with_type(wider)
    del fields["live"], fields["roots"]
    licensed = any(plain_name(name) in LICENCES for name in fields)
    left_out = [] if all_columns else [field.name for field in fields.values() if tells_too_much(field.name)]
    going = [field for field in fields.values() if field.name not in left_out]
    names = {field.name.lower() for field in going}
    derived = [name for name in Attribution._fields if licensed and name not in names]
    schema = pa.schema([*going, *(pa.field(name, pa.string()) for name in derived)])
    return schema, [name for name in left_out if name.lower() not in derived], derived
