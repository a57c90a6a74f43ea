"""Text that was read in pictures: facts of each picture, kept by its bytes, so a moved or copied photo keeps them.

text_in_picture    the lines in reading order, joined by blanks; missing where nothing is written
text_boxes         JSON: [[text, confidence, x, y, width, height], …] in shares of width and height
text_read_by       what read it, with its version; a picture without a value was not read
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from eyespot.gallery.index_tables import SHARD_OF, STALE_ALL, unpacked
from eyespot.parallel import ordered_map
from eyespot.photos.places import NotReread, full_path, reread
from eyespot.storage import sqlite

if TYPE_CHECKING:
    from PIL.Image import Image

    from eyespot.gallery.picture_index import Failure, PictureIndex
    from eyespot.types import Progress, TextBox, TextReader

WORDS, BOXES, READ_BY = COLUMNS = ("text_in_picture", "text_boxes", "text_read_by")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # what no table holds
AHEAD = 3  # pictures that are decoded while one is read
_UNREAD = f"""SELECT {SHARD_OF.format("p.number")}, p.number, p.id, d.root, d.path || name FROM pictures p
    JOIN paths ON paths.item = +p.number JOIN folders d ON d.number = folder
    LEFT JOIN picture_texts t ON t.item = p.number
    WHERE t.item IS NULL OR (:again AND t.failed IS NOT NULL) ORDER BY 1, 2, 4, 5"""
_FAILED = """SELECT d.root AS root, min(d.path || name) AS path, t.failed FROM picture_texts t
    JOIN paths ON paths.item = +t.item JOIN folders d ON d.number = folder
    WHERE t.failed IS NOT NULL GROUP BY t.item ORDER BY root, path"""


@dataclass
class TextSummary:
    """What a run read: pictures now, those of the gallery with text, failures of earlier runs too."""

    read: int = 0
    with_text: int = 0
    away: int = 0  # out of reach, or changed meanwhile; the next run tries them again
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class UnreadPicture:
    """A picture whose text is not known: its shard, its number and id, and where it lies."""

    shard: int
    number: int
    id: str
    places: list[str]


def read_texts(index: PictureIndex, reader: TextReader, again: bool, progress: Progress) -> Iterator[int]:
    """Read the text of every picture that was not read, with `again` of those that failed; each shard that is done."""
    waiting = unread(index, again)
    done = 0
    with ThreadPoolExecutor(1) as pool:  # it takes far longer to read a picture than to decode it
        pictures = ordered_map(lambda one: reread(one.id, one.places, reader.min_side), waiting, pool, AHEAD)
        for shard, group in groupby(zip(waiting, pictures, strict=True), key=lambda pair: pair[0].shard):
            for unread_picture, picture in group:
                _read(index, reader, unread_picture, picture)
                done += 1
                progress("reading text", done, len(waiting))
            yield shard


def unread(index: PictureIndex, again: bool) -> list[UnreadPicture]:
    """Pictures of scanned photos that nothing has read, by shards and rows."""
    roots = index.roots()
    rows = index.sql.execute(_UNREAD, {"again": again}).fetchall()
    pictures = []
    for (shard, number, id), group in groupby(rows, key=lambda row: row[:3]):
        places = [full_path(roots[root], path) for *_, root, path in group]
        pictures.append(UnreadPicture(shard, number, unpacked(id), places))
    return pictures


def summary(index: PictureIndex, before: int) -> TextSummary:
    """What is known of the pictures that are there; `before`: how many of them had been read when the run began."""
    known = "FROM picture_texts t WHERE failed IS NULL AND EXISTS (SELECT 1 FROM paths WHERE paths.item = +t.item)"
    read, with_text = index.sql.execute(
        f"SELECT count(*), ifnull(sum(facts LIKE ?), 0) {known}", (f'%"{WORDS}"%',)
    ).fetchone()
    return TextSummary(read - before, with_text, len(unread(index, False)), failures(index))


def failures(index: PictureIndex) -> list[Failure]:
    """Pictures whose text could not be read, by root and path."""
    from eyespot.gallery.picture_index import Failure  # and with it all that writes a gallery

    return [Failure(root, path, f"its text: {reason}") for root, path, reason in index.sql.execute(_FAILED)]


def take_back(index: PictureIndex, number: int, row: Mapping[str, Any]) -> None:
    """Take down again what a row of a shard's table says of a picture; call inside a transaction."""
    if row.get(READ_BY) is not None:
        facts = {name: row[name] for name in COLUMNS if row.get(name) is not None}
        index.sql.execute(
            "INSERT OR IGNORE INTO picture_texts VALUES (?, ?, NULL)", (number, json.dumps(facts, ensure_ascii=False))
        )
        index.sql.executemany("INSERT OR IGNORE INTO columns VALUES (?, 'text')", [(name,) for name in COLUMNS])


# -- reading ------------------------------------------------------------------------------------------------


def _read(index: PictureIndex, reader: TextReader, unread_picture: UnreadPicture, picture: Image | NotReread) -> None:
    facts: dict[str, str] = {}
    failed = None
    if isinstance(picture, NotReread):
        if picture.passing:
            return
        failed = picture.reason
    else:
        try:
            facts = text_facts(reader.read(picture), reader.name)
        except Exception as error:  # engines raise nearly anything at odd pictures, and one must not stop the others
            failed = (str(error).strip() or type(error).__name__).splitlines()[-1][:200]
    with sqlite.transaction(index.sql):
        if facts:
            kinds = {name.casefold(): (name, kind) for name, kind in index.columns().items()}
            for column in COLUMNS:
                spelled, kind = kinds.get(column, (column, ""))
                if kind != "text":
                    index.sql.execute("INSERT OR REPLACE INTO columns VALUES (?, 'text')", (spelled,))
                    index.sql.execute(STALE_ALL)
        values = (unread_picture.number, json.dumps(facts, ensure_ascii=False), failed)
        index.sql.execute("INSERT OR REPLACE INTO picture_texts VALUES (?, ?, ?)", values)
        index.sql.execute("INSERT OR IGNORE INTO stale VALUES (?)", (unread_picture.shard,))


# -- facts --------------------------------------------------------------------------------------------------


def text_facts(boxes: Sequence[TextBox], read_by: str) -> dict[str, str]:
    """The columns of a picture's text.

    A picture whose only text is one sign has no words: that is what readers see in spots, handles and leaves.
    """
    plain = [box._replace(text=" ".join(_NO_TEXT.sub(" ", box.text).split())) for box in boxes]
    ordered = reading_order([box for box in plain if box.text])
    facts = {READ_BY: read_by}
    if ordered:
        rows = [[box.text, *(round(number, 4) for number in box[1:])] for box in ordered]
        facts[BOXES] = json.dumps(rows, ensure_ascii=False)
    words = " ".join(box.text for box in ordered)
    return {WORDS: words, **facts} if len(words) > 1 else facts


def reading_order(boxes: Sequence[TextBox]) -> list[TextBox]:
    """From top to bottom; boxes beside each other, whose middles differ by less than half a height, left to right."""
    rows: list[list[TextBox]] = []
    for box in sorted(boxes, key=_middle):
        if rows and _middle(box) - _middle(rows[-1][0]) < min(box.height, rows[-1][0].height) / 2:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=attrgetter("x"))]


def _middle(box: TextBox) -> float:
    return box.y + box.height / 2
