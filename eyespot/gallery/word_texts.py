"""The texts of rows as FTS5 gets them: of a shard's table, and of the few rows whose reasons a search shows."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from eyespot.gallery import row_store
from eyespot.photos.names import shown_name
from eyespot.photos.places import Root
from eyespot.photos.videos.addresses import file_of

Sources = Sequence[tuple[str | None, str]]  # a column of the facts and what people call it; at last files and folders
_ADDRESS = re.compile(r"\w+://\S+$")
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


def make_tables(table: sqlite3.Connection, sources: Sources) -> str:
    """Make the empty tables of words and of their sources; gives what inserts a row's number and texts."""
    fields = ", ".join(f"c{number}" for number in range(len(sources)))
    table.executescript(
        "CREATE TABLE sources(number INTEGER PRIMARY KEY, field TEXT, name TEXT);"
        f"CREATE VIRTUAL TABLE words USING fts5({fields}, content='', tokenize='unicode61 remove_diacritics 2');"
    )
    table.executemany("INSERT INTO sources VALUES (?, ?, ?)", ((at, *one) for at, one in enumerate(sources)))
    return f"INSERT INTO words(rowid, {fields}) VALUES ({', '.join('?' * (len(sources) + 1))})"


def read_sources(table: sqlite3.Connection) -> Sources:
    """What the columns of a table come from."""
    return table.execute("SELECT field, name FROM sources ORDER BY number").fetchall()


def fill_some(
    table: sqlite3.Connection, shard: Path, rows: Sequence[int], roots: Mapping[int, Root], sources: Sources
) -> None:
    """The words of some rows of one shard, under the numbers of the rows."""
    insert = make_tables(table, sources)
    table.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row')")
    lines = zip(rows, row_store.take_rows(shard, rows), strict=True)
    table.executemany(insert, ((row, *texts_of(facts, sources, roots)) for row, facts in lines if facts["live"]))


def texts_of(facts: Mapping[str, Any], sources: Sources, roots: Mapping[int, Root]) -> list[str | None]:
    """The texts of a row, one for each source; at last of its files, and of their folders from the root down."""
    values = [str(facts.get(name) or "") for name, _ in sources if name is not None]
    # An address says nothing
    texts = [text if text and not _ADDRESS.match(text) else None for text in values]
    files, folders = list[str](), list[str]()
    for number, path in zip(facts["roots"], facts["paths"], strict=True):
        above, _, name = shown_name(file_of(path)).replace("\\", "/").rpartition("/")
        files.append(_parted(os.path.splitext(name)[0]))
        if "://" not in path:
            root = roots.get(number)
            folders += _folders("" if root is None or "://" in root.path else root.path, above)
    return [*texts, " ".join(dict.fromkeys(files)), " ".join(dict.fromkeys(folders))]


@lru_cache(1024)
def _folders(root: str, above: str) -> list[str]:
    parts = [os.path.basename(root.rstrip("/")), *above.split("/")]
    return [_parted(part) for part in parts if part]


def _parted(name: str) -> str:
    """A name, and its parts where they are written together: `brandenburgGate2` is also brandenburg, Gate and 2."""
    parts = _HUMP.sub(" ", name)
    return name if parts == name else f"{name} {parts}"
