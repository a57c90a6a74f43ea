"""Makes the words of a shard, `words.sqlite`: an FTS5 table with a row of texts for each live row of the shard.

It is made of the shard's facts and of the names that the gallery was given, by whoever writes them. Of a shard without
one, or whose facts have changed since, a search makes it for itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from eyespot.gallery import disk, items_table, row_store
from eyespot.gallery.postings import is_current, names_version, read_about, stamp_of
from eyespot.gallery.taxonomy.borne_names import BorneNames
from eyespot.gallery.word_texts import Sources, make_tables, texts_of
from eyespot.photos.places import Root
from eyespot.photos.provenance import ADDRESSES, COLUMNS as SOURCES, EMBEDDED, LICENCES, SIDECAR, plain_name
from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, new_digested
from eyespot.types import Progress, no_progress

FILE, FOLDER = "file name", "folder name"
COLUMNS = 1_900  # SQLite takes 2,000
PIECE = 1 << 13  # rows that are read at once
OWN_NAMES = {"title": "title", "caption": "caption", "description": "description", "text": "text"}
OWN_NAMES |= {"text_in_picture": "text in the picture"}
OWN_NAMES |= {name: name.replace("_", " ") for name in (*EMBEDDED, *SIDECAR)}
_SKIPPED = frozenset(
    {"id", "camera", "boxes", "textboxes", "textreadby", "videoid", *map(plain_name, (*LICENCES, *ADDRESSES, *SOURCES))}
)


class WordMaker:
    """Makes the tables of the shards of a gallery; `close` it in the end."""

    def __init__(self, gallery: Path) -> None:
        self.gallery, self.names, self._opened = gallery, names_version(gallery), ExitStack()
        self.close = self._opened.close

    @cached_property
    def _borne(self) -> BorneNames | None:
        with suppress(sqlite3.Error):  # names that cannot be read are none
            if self.names:
                table = sqlite.connect_to_read(self.gallery / disk.NAMES)
                return BorneNames(self._opened.enter_context(closing(table)))
        return None

    def made(self, shard: Path) -> bytes:
        """The table of a shard, as the bytes of a database."""
        sources, roots = sources_of(shard), disk.read_or_rebuild_header(self.gallery).roots
        lengths = np.zeros(items_table.count_items(shard), np.int64)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
            insert = make_tables(table, sources)
            table.executescript(
                "CREATE TABLE about(name TEXT PRIMARY KEY, value); CREATE TABLE borne(taxon INTEGER, name TEXT);"
            )
            table.execute("BEGIN")
            table.executemany(insert, ((row, *texts) for row, texts in _texts(shard, sources, roots, self._borne)))
            rows = 0
            for row, sizes in table.execute("SELECT id, sz FROM words_docsize"):
                lengths[row] = _sum(sizes)
                rows += 1
            table.executemany("INSERT INTO borne VALUES (?, ?)", () if self._borne is None else self._borne.rows())
            table.execute("CREATE INDEX borne_taxon ON borne(taxon)")
            packed = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))).newbyteorder("<"))
            about = {"stamp": stamp_of(shard), "names": self.names, "rows": rows}
            about |= {"lengths": packed.tobytes(), "type": packed.dtype.str}
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


def sources_of(shard: Path) -> list[tuple[str | None, str]]:
    """The columns that hold words of people, with what they are called to them; then names of files and folders."""
    import pyarrow as pa

    schema = items_table.schema_of(shard)
    names = [field.name for field in schema if pa.types.is_string(field.type)]
    # What `eyespot tag` wrote is not a word of a person: it would teach the encoder its own guesses
    guessed = {name for name in names if {f"{name}_by", f"{name}_score"} <= set(schema.names)}
    own = {*guessed, *(f"{name}_by" for name in guessed)}
    names = [name for name in names if name not in own and plain_name(name) not in _SKIPPED][:COLUMNS]
    return [*((name, OWN_NAMES.get(name.casefold(), f"label {name}")) for name in names), (None, FILE), (None, FOLDER)]


def _texts(
    shard: Path, sources: Sources, roots: Mapping[int, Root], borne: BorneNames | None
) -> Iterator[tuple[int, list[str | None]]]:
    """The texts of each live row of a shard, in the order of the columns, then file and folder names."""
    first = 0
    for batch in items_table.read_items(
        shard, ["live", "roots", "paths", *(name for name, _ in sources if name)]
    ).to_batches(PIECE):
        for row, facts in enumerate(batch.to_pylist(), first):
            if facts["live"]:
                texts = texts_of(facts, sources, roots)
                if borne is not None:
                    for text in filter(None, texts):
                        borne.read(text)
                yield row, texts
        first += len(batch)
