"""Words beside the photos, to be searched: labels, titles, texts inside the files, names of files and folders.

An SQLite FTS5 table whose rows are the rows of the gallery's shards. It is a copy of what the shards say and is made
again when they have changed: beside them, else in the user's cache, else in memory. Where the gallery was given names
(`eyespot names`), it also says which of them stand beside the photos, and under which taxa they belong.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.attribution import ADDRESSES, LICENCES, plain_name
from eyespot.gallery.photos.embedded_texts import EMBEDDED
from eyespot.gallery.photos.names import shown_name
from eyespot.gallery.photos.places import Root
from eyespot.gallery.taxonomy import name_index
from eyespot.gallery.taxonomy.name_index import BorneNames, NameIndex
from eyespot.gallery.videos.addresses import file_of
from eyespot.storage import sqlite

VERSION = "2"  # of the table; another one makes it again
NAME = "words.sqlite"
ROWS = 1 << 32  # rows of a shard: the row of the table is shard · ROWS + row
FILE, FOLDER = "file name", "folder name"
COLUMNS = 1_900  # SQLite takes 2,000
NAMES_AT_ONCE = 500  # of one question
OWN_NAMES = {"title": "title", "caption": "caption", "description": "description", "text": "text"}
OWN_NAMES |= {"text_in_picture": "text in the picture"}
OWN_NAMES |= {name: name.replace("_", " ") for name in EMBEDDED}
_SKIPPED = frozenset(
    {"id", "camera", "boxes", "textboxes", "textreadby", "videoid", *map(plain_name, (*LICENCES, *ADDRESSES))}
)
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


Answered = TypeVar("Answered")


class QueryWord(NamedTuple):
    """A word of a query, and what may stand in its place: names of the same thing, each of one word or more."""

    word: str
    names: tuple[str, ...] = ()


class MatchingRows(NamedTuple):
    """Rows of the table that hold any of some words: their keys in order (n,), which words (n, words), BM25 (n,)."""

    keys: NDArray[np.int64]
    holds: NDArray[np.bool_]
    bm25: NDArray[np.float64]


class WordIndex:
    """The words of one gallery; opening makes the table if it is missing or out of date."""

    def __init__(self, gallery: Path) -> None:
        self.gallery = gallery

    @cached_property
    def _source(self) -> Path | bytes:
        """The file of the table, or its bytes where no folder may be written."""
        stamp = _stamp(self.gallery)
        return next((place for place in self._places if _read_stamp(place) == stamp), None) or self._made(stamp)

    @property
    def _places(self) -> list[Path]:
        return [self.gallery / NAME, *_cached(self.gallery)]

    def _made(self, stamp: str) -> Path | bytes:
        for place in self._places:
            with suppress(OSError), sqlite.new_database(place) as table:
                _fill(table, self.gallery, stamp)
            if _read_stamp(place) == stamp:
                return place
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
            _fill(table, self.gallery, stamp)
            return table.serialize()

    def _ask(self, question: Callable[[sqlite3.Connection], Answered]) -> Answered:
        """What a question gives; a table that turns out to be damaged, or is gone by now, is made again first."""
        try:
            with closing(self._open()) as table:
                return question(table)
        except sqlite3.DatabaseError:
            self._source = self._made(_stamp(self.gallery))
        with closing(self._open()) as table:
            return question(table)

    def _open(self) -> sqlite3.Connection:
        """A connection of its own for each question, so that threads may ask at once."""
        if isinstance(self._source, Path):
            return sqlite.connect_to_read(self._source)
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(self._source)
        return connection

    @property
    def columns(self) -> list[str]:
        """What the words come from, such as "label species", "title" or "file name"."""
        return self._ask(_columns)

    @cached_property
    def rows(self) -> int:
        """How many rows the table has."""
        return self._ask(lambda table: int(table.execute(_ROWS).fetchone()[0]))

    @cached_property
    def names(self) -> NameIndex | None:
        """The names in other languages that the gallery was given; None if there are none."""
        return NameIndex.of(self.gallery)

    def borne(self, taxa: Sequence[int]) -> list[str]:
        """The names that stand beside photos for these taxa, or for what belongs to them."""
        return self._ask(lambda table: _borne(table, taxa)) if taxa else []

    def counts(self, words: Sequence[str]) -> list[int]:
        """How many rows hold each word."""
        return self._ask(lambda table: [table.execute(_COUNT, (_either(word),)).fetchone()[0] for word in words])

    def matching(self, words: Sequence[QueryWord | str]) -> MatchingRows:
        """The rows that hold any of these words, or a name in its place; none without a word."""
        words = _query_words(words)
        if not words:
            return MatchingRows(np.zeros(0, np.int64), np.zeros((0, 0), bool), np.zeros(0))
        return self._ask(lambda table: _matching(table, words))

    def sources(self, words: Sequence[QueryWord | str], keys: Sequence[int]) -> dict[int, list[str]]:
        """For each of these rows the columns that hold any of the words, or of the names in their places."""
        found: dict[int, list[str]] = {key: [] for key in keys}
        if not words:
            return found
        roots = disk.read_header(self.gallery).roots
        by_shard: dict[int, list[int]] = {}
        for key in found:
            by_shard.setdefault(key // ROWS, []).append(key % ROWS)
        for shard in disk.shard_paths(self.gallery):
            if not (rows := by_shard.get(int(shard.name))):
                continue
            # Names may be tens of thousands: they are looked for in a table of these rows alone
            with suppress(FileNotFoundError), closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
                _fill_some(table, shard, rows, roots)
                for row, name in _sources(table, _query_words(words)):
                    found[int(shard.name) * ROWS + row].append(name)
        return found


def _columns(table: sqlite3.Connection) -> list[str]:
    return [name for (name,) in table.execute("SELECT name FROM sources ORDER BY number")]


def _query_words(words: Sequence[QueryWord | str]) -> list[QueryWord]:
    return [QueryWord(word) if isinstance(word, str) else word for word in words]


def _borne(table: sqlite3.Connection, taxa: Sequence[int]) -> list[str]:
    question = f"SELECT DISTINCT name FROM borne WHERE taxon IN ({', '.join('?' * len(taxa))})"
    return [name for (name,) in table.execute(question, taxa)]


def _matching(table: sqlite3.Connection, words: Sequence[QueryWord]) -> MatchingRows:
    own = dict(table.execute(_SCORED, (" OR ".join(_either(word.word) for word in words),)).fetchall())
    known: dict[tuple[str, ...], set[int]] = {}  # the words of one name have the same names in their places
    holding = []
    for word in words:
        if word.names not in known:
            known[word.names] = {key for part in _any_name(word.names) for (key,) in table.execute(_KEYS, (part,))}
        holding.append(known[word.names].union(key for (key,) in table.execute(_KEYS, (_either(word.word),))))
    keys = np.array(sorted(set().union(*holding)), np.int64)  # (n,)
    holds = np.zeros((len(keys), len(words)), bool)
    for at, its in enumerate(holding):
        holds[np.searchsorted(keys, np.array(sorted(its), np.int64)), at] = True
    return MatchingRows(keys, holds, np.array([own.get(key, 0.0) for key in keys.tolist()], np.float64))


def _sources(table: sqlite3.Connection, words: Sequence[QueryWord]) -> Iterator[tuple[int, str]]:
    """Each row with each column that holds any of the words, or of the names in their places."""
    terms = {term for (term,) in table.execute("SELECT term FROM terms")}
    # A word beyond ASCII may be another one in the table
    others = {name for word in words for name in word.names if not name.isascii() or terms.issuperset(name.split())}
    parts = [" OR ".join(_either(word.word) for word in words), *_any_name(sorted(others))]
    for number, name in enumerate(_columns(table)):
        for key in {key for part in parts for (key,) in table.execute(_KEYS, (f"{{c{number}}} : ({part})",))}:
            yield key, name


def _any_name(names: Sequence[str]) -> Iterator[str]:
    """Questions that together ask for any of these names, whose words are letters and digits alone."""
    for start in range(0, len(names), NAMES_AT_ONCE):
        yield " OR ".join(f'"{name}"' for name in names[start : start + NAMES_AT_ONCE])


_ROWS = "SELECT value FROM about WHERE name = 'rows'"
_COUNT = "SELECT count(*) FROM words WHERE words MATCH ?"
_KEYS = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid"
_SCORED = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ? ORDER BY rowid"


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, each once: letters, digits and the marks on them, and nothing else.

    No sign of FTS5's own query language is left.
    """
    letters = unicodedata.normalize("NFC", text).lower()
    kept = "".join(letter if unicodedata.category(letter)[0] in "LNM" else " " for letter in letters)
    return list(dict.fromkeys(kept.split()))


def _either(word: str) -> str:
    """A word in FTS5's language: itself, or its singular or plural where it has the form of one in English."""
    forms = {word, f"{word}s", f"{word}es"} if len(word) > 2 and word.isalpha() else {word}
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms |= {word[:-1], *([word[:-2]] if word.endswith(("ches", "shes", "xes", "sses")) else [])}
    quoted = [f'"{form}"' for form in sorted(forms)]
    return f"({' OR '.join(quoted)})"


# -- making it ------------------------------------------------------------------------------------------------


def _stamp(gallery: Path) -> str:
    """What changes whenever a shard's facts or the names of the roots do."""
    parts = [VERSION, repr(sorted(disk.read_header(gallery).roots.items()))]
    for shard in disk.shard_paths(gallery):
        status = (shard / disk.ITEMS).stat()
        parts.append(f"{shard.name} {status.st_mtime_ns} {status.st_size}")
    with suppress(FileNotFoundError):
        status = (gallery / name_index.NAME).stat()
        parts.append(f"names {status.st_mtime_ns} {status.st_size}")
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _read_stamp(place: Path) -> str | None:
    """The stamp of a table that can be read; a damaged one is made again."""
    if place.is_file():
        with suppress(sqlite3.Error, OSError), closing(sqlite.connect_to_read(place)) as table:
            found = table.execute("SELECT value FROM about WHERE name = 'stamp'").fetchone()
            return str(found[0]) if found else None
    return None


def _cached(gallery: Path) -> list[Path]:
    """A place in the user's cache; none without a home: others could foresee a name in the folder for passing files."""
    digest = hashlib.sha256(os.fsencode(gallery.absolute())).hexdigest()[:16]
    with suppress(RuntimeError):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        return [cache / "eyespot" / "words" / f"{digest}.sqlite"]
    return []


def _fill(table: sqlite3.Connection, gallery: Path, stamp: str) -> None:
    shards = disk.shard_paths(gallery)
    roots = disk.read_header(gallery).roots
    columns = list(dict.fromkeys(name for shard in shards for name in _text_columns(shard)))[:COLUMNS]
    insert = _make_tables(table, columns)
    table.executescript(
        "CREATE TABLE about(name TEXT PRIMARY KEY, value); CREATE TABLE borne(taxon INTEGER, name TEXT);"
    )
    table.execute("BEGIN")
    rows = 0
    with _bearing(gallery) as borne:
        for shard in shards:
            first = int(shard.name) * ROWS
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


def _fill_some(table: sqlite3.Connection, shard: Path, rows: Sequence[int], roots: Mapping[int, Root]) -> None:
    """The words of some rows of one shard, under the numbers of the rows; of rows that are not there none."""
    columns = _text_columns(shard)[:COLUMNS]
    insert = _make_tables(table, columns)
    table.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row')")
    table.executemany(insert, ((row, *texts) for row, texts in _texts(shard, columns, roots, rows)))


def _make_tables(table: sqlite3.Connection, columns: Sequence[str]) -> str:
    """Make the empty tables of words and of their sources; gives what inserts a row's number and texts."""
    sources = [*(OWN_NAMES.get(name.casefold(), f"label {name}") for name in columns), FILE, FOLDER]
    fields = ", ".join(f"c{number}" for number in range(len(sources)))
    table.executescript(
        "CREATE TABLE sources(number INTEGER PRIMARY KEY, name TEXT);"
        f"CREATE VIRTUAL TABLE words USING fts5({fields}, content='', tokenize='unicode61 remove_diacritics 2');"
    )
    table.executemany("INSERT INTO sources VALUES (?, ?)", enumerate(sources))
    return f"INSERT INTO words(rowid, {fields}) VALUES ({', '.join('?' * (len(sources) + 1))})"


@contextmanager
def _bearing(gallery: Path) -> Iterator[BorneNames | None]:
    """What finds the gallery's given names in texts; None where it was given none, or they cannot be read."""
    place = gallery / name_index.NAME
    names = None
    with suppress(sqlite3.Error):
        names = sqlite.connect_to_read(place) if place.is_file() else None
    try:
        yield None if names is None else BorneNames(names)
    finally:
        if names is not None:
            names.close()


def _text_columns(shard: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(shard / disk.ITEMS)
    names = [field.name for field in schema if pa.types.is_string(field.type)]
    # What `eyespot tag` wrote is no word of a person: it would teach the encoder its own guesses
    guessed = {name for name in names if {f"{name}_by", f"{name}_score"} <= set(schema.names)}
    own = {*guessed, *(f"{name}_by" for name in guessed)}
    return [name for name in names if name not in own and plain_name(name) not in _SKIPPED]


def _texts(
    shard: Path, columns: Sequence[str], roots: Mapping[int, Root], some: Sequence[int] | None = None
) -> Iterator[tuple[int, list[str | None]]]:
    """The texts of each live row of a shard, or of some, in the order of the columns, then file and folder names."""
    there = ["live", "roots", "paths", *(name for name in _text_columns(shard) if name in set(columns))]
    if some is None:
        lines: Iterable[tuple[int, dict[str, Any]]] = enumerate(disk.read_items(shard, there).to_pylist())
    else:
        count = disk.count_items(shard)
        some = [row for row in some if row < count]
        lines = zip(some, disk.read_rows(shard, some).select(there).to_pylist(), strict=True)
    for row, facts in lines:
        if facts["live"]:
            texts: list[str | None] = [_label_text(facts.get(name)) for name in columns]
            yield row, [*texts, *_names(facts["roots"], facts["paths"], roots)]


def _label_text(value: Any) -> str | None:
    """A text; an address says nothing."""
    return str(value) if value and not re.match(r"\w+://\S+$", str(value)) else None


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
