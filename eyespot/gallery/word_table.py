"""Makes the words of a shard, `words.sqlite`: an FTS5 table with a row of texts for each live row of the shard.

It is made of the shard's facts and of the names that the gallery was given, by whoever writes them. Of a shard without
one, or whose facts have changed since, a search makes it for itself.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from eyespot.gallery import disk, items_table, row_store
from eyespot.gallery.postings import is_current, names_version, read_about, stamp_of
from eyespot.gallery.taxonomy.borne_names import BorneNames
from eyespot.photos import sidecars
from eyespot.photos.embedded_facts import EMBEDDED
from eyespot.photos.names import shown_name
from eyespot.photos.places import Root
from eyespot.photos.provenance import ADDRESSES, LICENCES, plain_name
from eyespot.photos.provenance import COLUMNS as SOURCES
from eyespot.photos.videos.addresses import file_of
from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, new_digested
from eyespot.types import Progress, no_progress

FILE, FOLDER = "file name", "folder name"
COLUMNS = 1_900  # SQLite takes 2,000
PIECE = 1 << 13  # rows that are read at once
OWN_NAMES = {"title": "title", "caption": "caption", "description": "description", "text": "text"}
OWN_NAMES |= {"text_in_picture": "text in the picture"}
OWN_NAMES |= {name: name.replace("_", " ") for name in (*EMBEDDED, *sidecars.TEXTS)}
_SKIPPED = frozenset(
    {"id", "camera", "boxes", "textboxes", "textreadby", "videoid", *map(plain_name, (*LICENCES, *ADDRESSES, *SOURCES))}
)
_ADDRESS = re.compile(r"\w+://\S+$")
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


class WordMaker:
    """Makes the tables of the shards of a gallery; `close` it in the end."""

    def __init__(self, gallery: Path) -> None:
        self.gallery, self.names, self._opened = gallery, names_version(gallery), ExitStack()
        self.close = self._opened.close

    @cached_property
    def _borne(self) -> BorneNames | None:
        with suppress(sqlite3.Error):  # names that cannot be read are none
            if self.names:
                return BorneNames(
                    self._opened.enter_context(closing(sqlite.connect_to_read(self.gallery / disk.NAMES)))
                )
        return None

    def made(self, shard: Path) -> bytes:
        """The table of a shard, as the bytes of a database."""
        columns, roots = text_columns(shard)[:COLUMNS], disk.read_or_rebuild_header(self.gallery).roots
        lengths = np.zeros(items_table.count_items(shard), np.int64)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
            insert = _make_tables(table, columns)
            table.executescript(
                "CREATE TABLE about(name TEXT PRIMARY KEY, value); CREATE TABLE borne(taxon INTEGER, name TEXT);"
            )
            table.execute("BEGIN")
            table.executemany(insert, ((row, *texts) for row, texts in _texts(shard, columns, roots, self._borne)))
            rows = 0
            for row, sizes in table.execute("SELECT id, sz FROM words_docsize"):
                lengths[row] = _sum(sizes)
                rows += 1
            table.executemany("INSERT INTO borne VALUES (?, ?)", () if self._borne is None else self._borne.rows())
            table.execute("CREATE INDEX borne_taxon ON borne(taxon)")
            packed = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0)))).tobytes()
            about = {"stamp": stamp_of(shard), "names": self.names, "rows": rows, "lengths": packed}
            table.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            table.execute("COMMIT")
            return table.serialize()

    def write(self, shard: Path) -> None:
        """Put the table of a shard beside its facts. Raises OSError on a full disk."""
        with new_digested(shard / disk.WORDS) as file:
            file.write(self.made(shard))


def complete(gallery: Path, progress: Progress = no_progress, look: LookAtFiles = damaged_at_a_glance) -> None:
    """Write what shards lack of what is made of their facts: facts by row, and words. Raises OSError on a full disk.

    A copy of a published gallery has the words that were published.
    """
    row_store.complete(gallery, progress, look)
    if (gallery / disk.FETCHED).exists():
        return
    with closing(WordMaker(gallery)) as maker:
        lacking = [
            shard
            for shard in disk.shard_paths(gallery)
            if look(shard, [disk.WORDS]) or not is_current(read_about(shard / disk.WORDS), shard, maker.names)
        ]
        for done, shard in enumerate(lacking):
            progress("reading words", done, len(lacking))
            maker.write(shard)
    (gallery / disk.WORDS).unlink(missing_ok=True)  # of an older eyespot: one for all shards


def complete_if_room(
    gallery: Path, progress: Progress = no_progress, look: LookAtFiles = damaged_at_a_glance
) -> list[str]:
    """The same; without room everything works all the same, and a note says so."""
    try:
        complete(gallery, progress, look)
    except OSError as error:
        return [f"facts by row and words were not written {trouble(error)}"]
    return []


def _sum(sizes: bytes) -> int:
    """The sum of SQLite's numbers of seven bits a byte."""
    if max(sizes) < 128:
        return sum(sizes)
    total = number = 0
    for byte in sizes:
        number = number << 7 | byte & 127
        if byte < 128:
            total, number = total + number, 0
    return total


def fill_some(table: sqlite3.Connection, shard: Path, rows: Sequence[int], roots: Mapping[int, Root]) -> None:
    """The words of some rows of one shard, under the numbers of the rows; of rows that are not there none."""
    columns, count = text_columns(shard)[:COLUMNS], items_table.count_items(shard)
    insert, rows = _make_tables(table, columns), [row for row in rows if row < count]
    table.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row')")
    lines = zip(rows, row_store.take_rows(shard, rows), strict=True)
    table.executemany(insert, ((row, *_line(facts, columns, roots)) for row, facts in lines if facts["live"]))


def _make_tables(table: sqlite3.Connection, columns: Sequence[str]) -> str:
    """Make the empty tables of words and of their sources; gives what inserts a row's number and texts."""
    sources = source_names(columns)
    fields = ", ".join(f"c{number}" for number in range(len(sources)))
    table.executescript(
        "CREATE TABLE sources(number INTEGER PRIMARY KEY, name TEXT);"
        f"CREATE VIRTUAL TABLE words USING fts5({fields}, content='', tokenize='unicode61 remove_diacritics 2');"
    )
    table.executemany("INSERT INTO sources VALUES (?, ?)", enumerate(sources))
    return f"INSERT INTO words(rowid, {fields}) VALUES ({', '.join('?' * (len(sources) + 1))})"


def source_names(columns: Sequence[str]) -> list[str]:
    """What the columns are called to people, then the names of files and folders."""
    return [*(OWN_NAMES.get(name.casefold(), f"label {name}") for name in columns), FILE, FOLDER]


def text_columns(shard: Path) -> list[str]:
    """The columns of a shard that hold words of people."""
    import pyarrow as pa

    schema = items_table.schema_of(shard)
    names = [field.name for field in schema if pa.types.is_string(field.type)]
    # What `eyespot tag` wrote is no word of a person: it would teach the encoder its own guesses
    guessed = {name for name in names if {f"{name}_by", f"{name}_score"} <= set(schema.names)}
    own = {*guessed, *(f"{name}_by" for name in guessed)}
    return [name for name in names if name not in own and plain_name(name) not in _SKIPPED]


def _texts(
    shard: Path, columns: Sequence[str], roots: Mapping[int, Root], borne: BorneNames | None
) -> Iterator[tuple[int, list[str | None]]]:
    """The texts of each live row of a shard, in the order of the columns, then file and folder names."""
    first = 0
    for batch in items_table.read_items(shard, ["live", "roots", "paths", *columns]).to_batches(PIECE):
        for row, facts in enumerate(batch.to_pylist(), first):
            if facts["live"]:
                texts = _line(facts, columns, roots)
                for text in texts if borne is not None else ():
                    if text:
                        borne.read(text)
                yield row, texts
        first += len(batch)


def _line(facts: Mapping[str, Any], columns: Sequence[str], roots: Mapping[int, Root]) -> list[str | None]:
    values = [str(facts.get(name) or "") for name in columns]
    # An address says nothing
    texts = [text if text and not _ADDRESS.match(text) else None for text in values]
    return [*texts, *_names(facts["roots"], facts["paths"], roots)]


def _names(numbers: Sequence[int], paths: Sequence[str], roots: Mapping[int, Root]) -> tuple[str, str]:
    """The words of all names of a picture's files, and of the folders from the root down."""
    files: list[str] = []
    folders: list[str] = []
    for number, path in zip(numbers, paths, strict=True):
        above, _, name = shown_name(file_of(path)).replace("\\", "/").rpartition("/")
        files.append(_parted(os.path.splitext(name)[0]))
        if "://" not in path:
            root = roots.get(number)
            folders += _folders("" if root is None or "://" in root.path else root.path, above)
    return " ".join(dict.fromkeys(files)), " ".join(dict.fromkeys(folders))


@lru_cache(1024)
def _folders(root: str, above: str) -> list[str]:
    parts = [os.path.basename(root.rstrip("/")), *above.split("/")]
    return [_parted(part) for part in parts if part]


def _parted(name: str) -> str:
    """A name, and its parts where they are written together: `brandenburgGate2` is also brandenburg, Gate and 2."""
    parts = _HUMP.sub(" ", name)
    return name if parts == name else f"{name} {parts}"
