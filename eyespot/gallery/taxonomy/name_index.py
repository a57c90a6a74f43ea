"""The names of a gallery: `names.sqlite`, made of the files of names that somebody gave it.

A name leads to its taxa, a taxon to its other names and to what it belongs to. Only questions about a few names are
fast; the files are read from one end to the other once, when they are given.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from eyespot.gallery import disk
from eyespot.gallery.taxonomy.borne_names import MOST_TAXA, marks
from eyespot.gallery.taxonomy.name_tables import (
    LONGEST,
    Found,
    NameFailure,
    NameRow,
    TaxonRow,
    folded,
    forms,
    name_words,
    read_names,
)
from eyespot.gallery.word_table import complete_if_room
from eyespot.storage import sqlite
from eyespot.storage.atomic import make_folder, put_file, trouble
from eyespot.storage.locks import in_turn, locked
from eyespot.types import EyespotError, Progress, UsageError, no_progress

NAME = disk.NAMES
BATCH = 50_000  # rows
_AGAIN = "move it away, and give the names again: eyespot names FILE"
LISTED_FAILURES = 10_000  # malformed rows that are listed; more are counted
Answer = TypeVar("Answer")

_TABLES = """
CREATE TABLE IF NOT EXISTS files(number INTEGER PRIMARY KEY, name TEXT UNIQUE, taxa INTEGER, names INTEGER);
CREATE TABLE IF NOT EXISTS taxa(id INTEGER PRIMARY KEY, file INTEGER, parent INTEGER, own INTEGER);
CREATE TABLE IF NOT EXISTS names(folded TEXT, taxon INTEGER, name TEXT, place INTEGER);
CREATE INDEX IF NOT EXISTS names_folded ON names(folded);
CREATE INDEX IF NOT EXISTS names_taxon ON names(taxon);
"""
_STAGES = """
CREATE TEMP TABLE staged_taxa(id INTEGER PRIMARY KEY, key TEXT, parent TEXT, accepted TEXT);
CREATE TEMP TABLE staged_names(key TEXT, folded TEXT, name TEXT, place INTEGER);
"""
# A taxon that is there twice counts once; a synonym's names and children are those of the accepted taxon.
_JOIN = """
CREATE TEMP TABLE firsts(key TEXT PRIMARY KEY, id INTEGER, parent TEXT, accepted TEXT) WITHOUT ROWID;
INSERT OR IGNORE INTO firsts SELECT key, id, parent, accepted FROM staged_taxa ORDER BY id;
CREATE TEMP TABLE means(key TEXT PRIMARY KEY, id INTEGER) WITHOUT ROWID;
INSERT INTO means SELECT f.key, COALESCE(a.id, f.id) FROM firsts f LEFT JOIN firsts a ON a.key = f.accepted;
INSERT INTO taxa SELECT :base + f.id, :file, :base + p.id, f.key LIKE 'row:%'
    FROM firsts f LEFT JOIN means p ON p.key = f.parent
    WHERE f.accepted = '' OR f.accepted NOT IN (SELECT key FROM firsts);
INSERT INTO names SELECT DISTINCT n.folded, :base + m.id, n.name, n.place
    FROM staged_names n JOIN means m ON m.key = n.key;
"""


class NameFile(NamedTuple):
    """A file of names that a gallery has, and how much it says."""

    name: str
    taxa: int
    names: int


@dataclass(frozen=True)
class NamesSummary:
    """What a file of names gave: taxa, names, and rows that could not be used, the first of them listed."""

    file: NameFile
    failed: int
    failures: list[NameFailure]


@dataclass(frozen=True, slots=True)
class NamedTaxon:
    """One meaning of a name: its number, the file that says so, and its names, the scientific one first."""

    id: int
    file: str
    names: list[str]


# -- making it ------------------------------------------------------------------------------------------------


def add_names(gallery: Path, place: Path, progress: Progress = no_progress) -> NamesSummary:
    """Read a file, folder or .zip of names into the gallery, in place of what came from one of that name before.

    Raises `UsageError` for what holds no names; the gallery then stays as it is.
    """
    with _rewritten(gallery) as table:
        _drop(table, place.name)
        _run(table, _STAGES)
        failures: list[NameFailure] = []
        failed = _stage(table, read_names(place), failures, progress)
        (number,) = table.execute("SELECT ifnull(max(number), 0) + 1 FROM files").fetchone()
        (base,) = table.execute("SELECT ifnull(max(id), 0) FROM taxa").fetchone()
        _run(table, _JOIN, base=base, file=number)
        of_file = ("taxa WHERE file = ?", "names WHERE taxon IN (SELECT id FROM taxa WHERE file = ?)")
        counts = [table.execute(f"SELECT count(*) FROM {one}", (number,)).fetchone()[0] for one in of_file]
        if not counts[1]:
            why = f"; {failures[0].file}:{failures[0].line} {failures[0].reason}" if failures else ""
            raise UsageError(f"{place} holds no names that can be read{why}")
        table.execute("INSERT INTO files VALUES (?, ?, ?, ?)", (number, place.name, *counts))
    return NamesSummary(NameFile(place.name, *counts), failed, failures)


def remove_names(gallery: Path, name: str) -> None:
    """Forget what a file of names said; `UsageError` if the gallery has none of that name."""
    index = NameIndex.of(gallery)
    there = [] if index is None else [file.name for file in index.files]
    if name not in there:
        raise UsageError(f"the gallery has no names of {name!r}; there are: {', '.join(there) or 'none'}")
    with _rewritten(gallery) as table:
        _drop(table, name)


@contextmanager
def _rewritten(gallery: Path) -> Iterator[sqlite3.Connection]:
    """The table of names to be changed: a copy that takes its place when the block ends well."""
    place = gallery / NAME
    make_folder(gallery)
    with in_turn(place):
        handle, temporary = tempfile.mkstemp(prefix=f".{NAME}.", suffix=".part", dir=gallery)
        os.close(handle)
        try:
            if place.exists():
                sqlite.connect_to_read(place).close()  # refuses what eyespot did not make
                shutil.copyfile(place, temporary)
            with closing(sqlite3.connect(temporary, isolation_level=None)) as table:
                # What is half done is thrown away whole
                table.executescript(
                    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE;" + _TABLES
                )
                table.execute("BEGIN")
                yield table
                table.execute(f"PRAGMA user_version = {secrets.randbits(31)}")
                table.execute("COMMIT")
            put_file(Path(temporary), place)
            with suppress(EyespotError), locked(gallery):  # else who writes there now does it in the end
                complete_if_room(gallery)
        except (OSError, sqlite3.DatabaseError) as error:
            raise EyespotError(f"{place} cannot be changed {trouble(error, damaged=_AGAIN)}") from None
        finally:
            Path(temporary).unlink(missing_ok=True)


def _run(table: sqlite3.Connection, statements: str, **values: int) -> None:
    """Several statements in the transaction that is open, which `executescript` would end."""
    for statement in statements.split(";\n"):
        table.execute(statement, values)


def _drop(table: sqlite3.Connection, name: str) -> None:
    files = "SELECT number FROM files WHERE name = ?"
    table.execute(f"DELETE FROM names WHERE taxon IN (SELECT id FROM taxa WHERE file IN ({files}))", (name,))
    table.execute(f"DELETE FROM taxa WHERE file IN ({files})", (name,))
    table.execute("DELETE FROM files WHERE name = ?", (name,))


def _stage(table: sqlite3.Connection, rows: Iterator[Found], failures: list[NameFailure], progress: Progress) -> int:
    """Put the rows of a file into the staging tables; how many of them could not be used."""
    failed = done = 0
    while batch := list(islice(rows, BATCH)):
        taxa = [row for row in batch if isinstance(row, TaxonRow)]
        names = [(row.key, folded(row.name), row.name, row.place) for row in batch if isinstance(row, NameRow)]
        table.executemany("INSERT INTO staged_taxa(key, parent, accepted) VALUES (?, ?, ?)", taxa)
        table.executemany("INSERT INTO staged_names VALUES (?, ?, ?, ?)", names)
        wrong = [row for row in batch if isinstance(row, NameFailure)]
        failed += len(wrong)
        failures += wrong[: LISTED_FAILURES - len(failures)]
        done += len(batch)
        progress("reading names", done, 0)
    return failed


# -- asking it ------------------------------------------------------------------------------------------------


class NameIndex:
    """The names that a gallery has been given; each question has a connection of its own, so that threads may ask."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @classmethod
    def of(cls, gallery: Path) -> NameIndex | None:
        """The names of a gallery; None if it was given none."""
        place = gallery / NAME
        return cls(place) if place.is_file() else None

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            with closing(sqlite.connect_to_read(self.place)) as table:
                return question(table)
        except sqlite3.DatabaseError as error:
            raise EyespotError(f"{self.place} cannot be read {trouble(error, damaged=_AGAIN)}") from None

    @property
    def files(self) -> list[NameFile]:
        """What the names come from."""
        question = "SELECT name, taxa, names FROM files ORDER BY number"
        return self._ask(lambda table: [NameFile(*row) for row in table.execute(question)])

    def taxa(self, name: str) -> list[NamedTaxon]:
        """All that a name may mean: the taxa that bear it, in singular or plural.

        Where a row of one's own bears it, also those that bear another name of that row.
        """
        words = name_words(name)
        return self._ask(lambda table: _taxa(table, forms(words))) if words else []

    def longest(self, words: Sequence[str]) -> int:
        """How many of these words, from the first on, make a known name; 0 if none do."""

        def known(table: sqlite3.Connection) -> int:
            for length in range(min(LONGEST, len(words)), 0, -1):
                some = [word for part in words[:length] for word in name_words(part)]
                if some and table.execute(_KNOWN.format(marks(forms(some))), forms(some)).fetchone():
                    return length
            return 0

        return self._ask(known)


_KNOWN = "SELECT 1 FROM names WHERE folded IN ({}) LIMIT 1"


def _taxa(table: sqlite3.Connection, names: Sequence[str]) -> list[NamedTaxon]:
    question = "SELECT DISTINCT id, own FROM names JOIN taxa ON id = taxon WHERE folded IN ({}) ORDER BY id"
    found = dict(table.execute(question.format(marks(names)), names).fetchmany(MOST_TAXA))
    if own := [id for id, is_own in found.items() if is_own]:
        also = f"SELECT DISTINCT folded FROM names WHERE taxon IN ({marks(own)})"
        equal = [name for (name,) in table.execute(also, own)][:MOST_TAXA]
        found |= dict(table.execute(question.format(marks(equal)), equal).fetchmany(MOST_TAXA))
    named, of_file = [], "SELECT f.name FROM files f JOIN taxa t ON t.file = f.number WHERE t.id = ?"
    for id in found:
        (file,) = table.execute(of_file, (id,)).fetchone()
        its = table.execute("SELECT name FROM names WHERE taxon = ? GROUP BY folded ORDER BY min(place), rowid", (id,))
        named.append(NamedTaxon(id, file, [name for (name,) in its]))
    return named
