"""Makes the table of the words beside the photos: one row of texts for each live row of the gallery's shards."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from eyespot.gallery import disk, items_table
from eyespot.gallery.postings import ROWS
from eyespot.gallery.taxonomy.name_index import BorneNames
from eyespot.photos import sidecars
from eyespot.photos.embedded_facts import EMBEDDED
from eyespot.photos.names import shown_name
from eyespot.photos.places import Root
from eyespot.photos.provenance import ADDRESSES, LICENCES, plain_name
from eyespot.photos.provenance import COLUMNS as SOURCES
from eyespot.photos.videos.addresses import file_of
from eyespot.storage import sqlite

FILE, FOLDER = "file name", "folder name"
COLUMNS = 1_900  # SQLite takes 2,000
OWN_NAMES = {"title": "title", "caption": "caption", "description": "description", "text": "text"}
OWN_NAMES |= {"text_in_picture": "text in the picture"}
OWN_NAMES |= {name: name.replace("_", " ") for name in (*EMBEDDED, *sidecars.TEXTS)}
_SKIPPED = frozenset(
    {"id", "camera", "boxes", "textboxes", "textreadby", "videoid", *map(plain_name, (*LICENCES, *ADDRESSES, *SOURCES))}
)
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


def fill(table: sqlite3.Connection, gallery: Path, stamp: str) -> None:
    """The words of all live rows of a gallery, with a stamp, into an empty database."""
    shards = disk.shard_paths(gallery)
    roots = disk.read_header(gallery).roots
    columns = list(dict.fromkeys(name for shard in shards for name in text_columns(shard)))[:COLUMNS]
    insert = _make_tables(table, columns)
    table.executescript(
        "CREATE TABLE about(name TEXT PRIMARY KEY, value); CREATE TABLE borne(taxon INTEGER, name TEXT);"
    )
    table.execute("BEGIN")
    rows = 0
    with ExitStack() as opened:
        borne, place = None, gallery / disk.NAMES
        with suppress(sqlite3.Error):  # names that cannot be read are none
            if place.is_file():
                borne = BorneNames(opened.enter_context(closing(sqlite.connect_to_read(place))))
        for shard in shards:
            first = disk.number_of(shard) * ROWS
            lines = [(first + row, *texts) for row, texts in _texts(shard, columns, roots)]
            table.executemany(insert, lines)
            rows += len(lines)
            if borne is not None:
                for text in (text for line in lines for text in line if isinstance(text, str)):
                    borne.read(text)
        table.executemany("INSERT INTO borne VALUES (?, ?)", () if borne is None else borne.rows())
    table.execute("CREATE INDEX borne_taxon ON borne(taxon)")
    table.executemany("INSERT INTO about VALUES (?, ?)", [("stamp", stamp), ("rows", rows)])
    table.execute("COMMIT")


def fill_some(table: sqlite3.Connection, shard: Path, rows: Sequence[int], roots: Mapping[int, Root]) -> None:
    """The words of some rows of one shard, under the numbers of the rows; of rows that are not there none."""
    columns = text_columns(shard)[:COLUMNS]
    insert = _make_tables(table, columns)
    table.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row')")
    table.executemany(insert, ((row, *texts) for row, texts in _texts(shard, columns, roots, rows)))


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
    shard: Path, columns: Sequence[str], roots: Mapping[int, Root], some: Sequence[int] | None = None
) -> Iterator[tuple[int, list[str | None]]]:
    """The texts of each live row of a shard, or of some, in the order of the columns, then file and folder names."""
    there = ["live", "roots", "paths", *(name for name in text_columns(shard) if name in set(columns))]
    if some is None:
        lines: Iterable[tuple[int, dict[str, Any]]] = enumerate(items_table.read_items(shard, there).to_pylist())
    else:
        count = items_table.count_items(shard)
        some = [row for row in some if row < count]
        lines = zip(some, items_table.read_rows(shard, some).select(there).to_pylist(), strict=True)
    for row, facts in lines:
        if facts["live"]:
            values = [str(facts.get(name) or "") for name in columns]
            # An address says nothing
            texts = [text if text and not re.match(r"\w+://\S+$", text) else None for text in values]
            yield row, [*texts, *_names(facts["roots"], facts["paths"], roots)]


def _names(numbers: Sequence[int], paths: Sequence[str], roots: Mapping[int, Root]) -> tuple[str, str]:
    """The words of all names of a picture's files, and of the folders from the root down."""
    files: list[str] = []
    folders: list[str] = []
    for number, path in zip(numbers, paths, strict=True):
        *above, name = re.split(r"[/\\]", shown_name(file_of(path)))
        files.append(_parted(os.path.splitext(name)[0]))
        root = roots.get(number)
        top = [os.path.basename(root.path.rstrip("/"))] if root is not None and "://" not in root.path else []
        folders += [] if "://" in path else map(_parted, [*top, *above])
    return " ".join(dict.fromkeys(files)), " ".join(dict.fromkeys(folders))


def _parted(name: str) -> str:
    """A name, and its parts where they are written together: `brandenburgGate2` is also brandenburg, Gate and 2."""
    parts = _HUMP.sub(" ", name)
    return name if parts == name else f"{name} {parts}"
