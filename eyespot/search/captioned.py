"""A gallery's pictures with their captions and labels, in its columns or in files, to train on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.view import View
from eyespot.photos.labels import FILE_COLUMNS
from eyespot.photos.pictures import BadPicture
from eyespot.photos.places import picture_of
from eyespot.search.embedding import embed
from eyespot.search.matching import RowMatching, matched
from eyespot.storage.systems import usable_cores
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, required
from eyespot.types import Encoder, NothingFound, Query, UsageError, Vectors, quantity

if TYPE_CHECKING:
    from PIL.Image import Image

AT_ONCE = 256  # texts
CAPTION = "caption"
ASKED_WITH = "asked_with"
LABEL = "label"
TABLES = (".parquet", ".csv", ".tsv", ".jsonl")
IN_FOLDERS = "captions.parquet"  # as `eyespot build pairs` calls it


@dataclass(frozen=True)
class CaptionRows:
    """Texts with the row of the view that each is about, all of pictures that are there; `notes` are for the user.

    `asking` has the row of the picture that each text asks with, -1 for words alone.
    """

    rows: list[int]
    texts: list[str]
    asking: list[int]
    notes: Sequence[str] = ()


def pictures(view: View) -> tuple[Vectors, list[str]]:
    """The vectors (m, dim) and ids (m,) of all pictures that are there; `NothingFound` if none is."""
    if not view.live.any():
        raise NothingFound(f"{view.gallery.path} has no picture with vectors of {view.space.encoder}")
    ids = [str(name) for shard in view.shards for name in items_table.read_items(shard, ["id"])["id"].to_pylist()]
    images = np.concatenate([np.asarray(block, np.float32) for block in view.blocks])[view.live]
    return images, [name for name, live in zip(ids, view.live.tolist(), strict=True) if live]


def captioned(
    view: View, encoder: Encoder, captions: Sequence[CaptionRows]
) -> tuple[Vectors, Vectors, NDArray[np.int64], list[str]]:
    """Texts (n, dim), all pictures that are there (m, dim), the row of each text's picture (n,), and their ids (m,).

    `NothingFound` without a caption. An empty one means the picture that it asks with: the vector is that picture's.
    """
    images, ids = pictures(view)
    texts = [text for source in captions for text in source.texts]
    if not texts:
        raise NothingFound(f"no caption is of a picture of {view.gallery.path}; index the pictures that they name")
    asking = np.array([row for source in captions for row in source.asking], np.int64)
    numbers = np.cumsum(view.live) - 1  # (rows,), of each among those that are there
    vectors = np.empty((len(texts), images.shape[1]), np.float32)
    alone = np.array([not text for text in texts])
    vectors[alone] = images[numbers[asking[alone]]]  # a picture that asks by itself is embedded already
    worded = np.flatnonzero(~alone)
    for start in range(0, len(worded), AT_ONCE):
        some = worded[start : start + AT_ONCE]
        vectors[some] = _embedded(view, encoder, [texts[at] for at in some.tolist()], asking[some].tolist())
    of = numbers[np.array([row for source in captions for row in source.rows], np.int64)]
    return vectors, images, of.astype(np.int64), ids


def _embedded(view: View, encoder: Encoder, texts: Sequence[str], asking: Sequence[int]) -> Vectors:
    """Texts as a search asks them, (texts, dim): alone, or with a picture."""
    if max(asking) < 0:
        return encoder.encode_texts(texts)
    facts = view.facts([row for row in asking if row >= 0])
    places = iter([Path(str(one["path"])) for one in facts])
    pairs = zip(texts, asking, strict=True)
    return embed([Query.words(text) if row < 0 else Query.composed(next(places), text) for text, row in pairs], encoder)


def reading(view: View) -> Callable[[Sequence[int]], list[Image | None]]:
    """What reads pictures by their rows, upright in RGB; None for one that no place still holds whole."""

    def opened(places: Sequence[str]) -> Image | None:
        for place in places:
            with suppress(OSError, BadPicture):
                return picture_of(place)
        return None

    def read(rows: Sequence[int]) -> list[Image | None]:
        distinct = sorted(set(rows))
        places = [facts["paths"] for facts in view.facts(distinct)]
        with ThreadPoolExecutor(usable_cores()) as threads:
            found = dict(zip(distinct, threads.map(opened, places), strict=True))
        return [found[row] for row in rows]

    return read


def said_in(view: View, captions: str) -> Iterator[CaptionRows]:
    """What a file says, or each captions.parquet below a folder, or a column of the gallery.

    A file is what ends like a table or has a slash. Raises `UsageError` for what is not there, `NothingFound` for a
    folder without such files and a column without a text.
    """
    files = _files_named(captions)
    if files == []:
        raise NothingFound(f"{captions} holds no {IN_FOLDERS}; name the file of captions")
    yield from [of_column(view, captions)] if files is None else (of_file(view, file) for file in files)


def _files_named(spec: str) -> list[Path] | None:
    """The file that is named, or each captions.parquet below a folder; None for a column."""
    place = Path(spec).expanduser()
    if place.is_dir() and "/" in spec:
        return sorted(place.rglob(IN_FOLDERS))
    return [place] if "/" in spec or place.suffix.lower() in TABLES else None


# -- files --------------------------------------------------------------------------------------------------


def of_file(view: View, path: Path) -> CaptionRows:
    """A table with a column `caption` and one that names the picture: `id`, the gallery's, else `file_name` or `path`.

    A column `asked_with` names a picture that a text asks together with, as in sets of composed queries; without a
    caption the picture asks alone, as in pairs of two pictures of one class (`eyespot build pairs labelled`). Names are
    looked up as judged images are, by the way that finds most; one that several pictures are called by says nothing of
    any. Raises `UsageError` if there is no such file, or a column is missing.
    """
    column, rows = _read(path)
    matching = matched(view, [name for name, *_ in rows], "id" if column == "id" else None)
    clear = _clear(matching)
    pairs = [row for row in rows if row[0] in clear]
    notes = [_match_text(path, len(rows), len(pairs), matching)]
    # Of texts that ask with a picture, those stay whose picture is there too
    named = [other for *_, other in pairs if other]
    asked_with = _clear(matched(view, named)) if named else {}
    count, pairs = len(pairs), [pair for pair in pairs if not pair[2] or pair[2] in asked_with]
    asking = [asked_with.get(other, -1) for *_, other in pairs]
    if lost := count - len(pairs):
        notes.append(f"texts of {path} that ask with a picture that is not in the gallery, or not one alone: {lost}")
    return CaptionRows([clear[name] for name, *_ in pairs], [text for _, text, _ in pairs], asking, notes)


def _read(path: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """The column that names pictures; of each row the picture's name, what is said, and which picture it asks with.

    What has neither caption nor picture is passed over.
    """
    by, read = "id", []
    for line, row in rows_of(path, ("id", *FILE_COLUMNS, CAPTION, ASKED_WITH)):
        if CAPTION not in row and ASKED_WITH not in row:
            refuse(path, f"line {line}", f"has no column {CAPTION}")
        text, asked_with = " ".join(str(row.get(CAPTION) or "").split()), str(row.get(ASKED_WITH) or "")
        if text or asked_with:
            by = next((name for name in ("id", *FILE_COLUMNS) if name in row), "id")
            read.append((required(path, line, row, by), text, asked_with))
    return by, read


def _clear(matching: RowMatching) -> dict[str, int]:
    """The row of each name that means one picture."""
    unclear = set(matching.ambiguous)
    found = zip(matching.names, matching.rows.tolist(), strict=True)
    return {name: row for name, row in found if row >= 0 and name not in unclear}


def _match_text(path: Path, count: int, matches: int, matching: RowMatching) -> str:
    if not count:
        return f"{path} has no captions"
    lacking = matching.unmatched
    text = f"{matches} of {quantity(count, 'caption')} of {path} are of a picture of the gallery, by {matching.way}"
    if lacking:
        text += f"; {quantity(len(lacking), 'picture is', 'pictures are')} not there, {lacking[0]!r} for one"
    if matching.ambiguous:
        more = f" (and so for {len(matching.ambiguous) - 1} other names)" if len(matching.ambiguous) > 1 else ""
        text += f"; several pictures have the name {matching.ambiguous[0]!r}, so none is meant{more}"
    return text


# -- columns ------------------------------------------------------------------------------------------------


def cells_of(view: View, column: str) -> list[object]:
    """What a column says of each row, (rows,); `UsageError` without such a column."""
    columns = [pq.read_schema(shard / disk.ITEMS).names for shard in view.shards]
    known = {name for names in columns for name in names}
    if column not in known:
        raise UsageError(f"the gallery has no column {column}; it has: {', '.join(sorted(known)) or 'none'}")
    cells: list[object] = []
    for shard, names in zip(view.shards, columns, strict=True):
        found = items_table.read_items(shard, [column])[column].to_pylist() if column in names else None
        cells += [None] * items_table.count_items(shard) if found is None else found
    return cells


def of_column(view: View, column: str) -> CaptionRows:
    """A column's texts, one or several a picture; `UsageError` without such a column, `NothingFound` without a text."""
    texts = [
        (row, str(text))
        for row, cell in enumerate(cells_of(view, column))
        if view.live[row] and cell is not None
        for text in (cell if isinstance(cell, list) else [cell])
        if str(text).strip()
    ]
    if not texts:
        raise NothingFound(f"no picture of {view.gallery.path} has a text in its column {column}")
    return CaptionRows([row for row, _ in texts], [text for _, text in texts], [-1] * len(texts))


# -- labels -------------------------------------------------------------------------------------------------


def labels_of(view: View, spec: str) -> tuple[list[str | None], list[str]]:
    """The label of each row of a view, (rows,), None where there is none, and sentences for the user.

    By a column, a table with a column `label`, or each captions.parquet below a folder; a file is what ends like a
    table or has a slash. Raises `UsageError` for what is not there, `NothingFound` if no picture that is there has one.
    """
    files, notes = _files_named(spec), list[str]()
    if files is not None:
        labels, count = _labels_in(view, files)
        found = sum(one is not None for one in labels)
        notes = [f"{found} of {quantity(count, 'label')} of {Path(spec).expanduser()} are of a picture of the gallery"]
    else:
        labels = ["" if cell is None else str(cell).strip() for cell in cells_of(view, spec)]
    there = [(one or None) if live else None for one, live in zip(labels, view.live.tolist(), strict=True)]
    if not any(there):
        raise NothingFound(f"no picture of {view.gallery.path} has a label in {spec}")
    return there, notes


def _labels_in(view: View, files: list[Path]) -> tuple[list[str | None], int]:
    """By id, or by file name as judged images are, and of how many; a name of several pictures is passed over."""
    names: dict[str, str] = {}
    by = "id"
    for path in files:
        for line, row in rows_of(path, ("id", *FILE_COLUMNS, LABEL)):
            by = next((name for name in ("id", *FILE_COLUMNS) if name in row), "id")
            if LABEL not in row:
                refuse(path, f"line {line}", f"has no column {LABEL}")
            if row[LABEL] is not None and str(row[LABEL]).strip():
                names[required(path, line, row, by)] = str(row[LABEL]).strip()
    matching = matched(view, list(names), "id" if by == "id" else None)
    labels: list[str | None] = [None] * len(view.live)
    for name, at in _clear(matching).items():
        labels[at] = names[name]
    return labels, len(names)
