"""Named lists of photos: a name, the photos in their order, and the queries that they were found by.

Verdicts are not part of a list: they lie where all judgements lie, and a list shows those on its queries. A list may
have one link for readers without a token. The ledger holds only the digest of that link's token.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from eyespot.ledger.sqlite_file import SqliteFile
from eyespot.types import NothingFound, UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS photo_lists(number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, name TEXT NOT NULL,
    folded TEXT UNIQUE NOT NULL, maker TEXT NOT NULL, at REAL NOT NULL, changed INTEGER NOT NULL DEFAULT 0,
    link TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS listed_photos(list INTEGER NOT NULL, place INTEGER NOT NULL, image TEXT NOT NULL,
    PRIMARY KEY(list, place), UNIQUE(list, image)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS list_queries(list INTEGER NOT NULL, query TEXT NOT NULL, words TEXT NOT NULL,
    address TEXT NOT NULL, PRIMARY KEY(list, query)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS link_terms(link TEXT PRIMARY KEY, terms TEXT NOT NULL) WITHOUT ROWID;
"""
LONGEST_NAME = 120  # characters
MOST_LISTS, MOST_PHOTOS = 5_000, 200_000  # of one ledger, and of one list
_COLUMNS = """photo_lists.number, id, name, maker, at, changed, link IS NOT NULL,
    (SELECT count(*) FROM listed_photos WHERE list = photo_lists.number)"""


class ListQuery(NamedTuple):
    """A query of a list: its digest in the ledger, its words, and the address that searches for it again."""

    digest: str
    words: str
    address: str


class PhotoList(NamedTuple):
    """What is known of a list, without its photos. `changed` grows with every change; `at` is in seconds (Unix)."""

    number: int
    id: str
    name: str
    maker: str
    at: float
    changed: int
    linked: bool
    photos: int


class ListedPhoto(NamedTuple):
    """A photo of a list and its place, which it keeps while others come and go."""

    place: int
    image: str


class PhotoLists(SqliteFile):
    """The lists of one ledger; any number of threads and processes may work at them at once.

    What a method changes is on the disk when it returns. A list is named by its id.
    """

    what, schema = "lists", SCHEMA

    # -- reading --------------------------------------------------------------------------------------------

    def all(self, part: str = "") -> list[PhotoList]:
        """The lists, the latest first; with `part` those whose name or words hold it, in any case."""
        rows = self.select(f"SELECT {_COLUMNS} FROM photo_lists ORDER BY number DESC")
        lists, wanted = [_list(row) for row in rows], part.casefold().strip()
        if not wanted:
            return lists
        words = self.select("SELECT list, words FROM list_queries")
        named = {number for number, text in words if wanted in text.casefold()}
        return [one for one in lists if wanted in one.name.casefold() or one.number in named]

    def find(self, name: str) -> PhotoList:
        """The list with this id or, in any case, this name; `NothingFound` if there is none."""
        rows = self.select(f"SELECT {_COLUMNS} FROM photo_lists WHERE id = ? OR folded = ?", name, _folded(name))
        found = sorted((_list(row) for row in rows), key=lambda one: one.id != name)
        if not found:
            raise NothingFound(f"there is no list {name!r}; choose one of those on the page of lists")
        return found[0]

    def photos(self, id: str, first: int = 0, count: int = MOST_PHOTOS) -> list[str]:
        """The ids of at most `count` of a list's photos after the first ones, in their order."""
        return [one.image for one in self.places(id, first, count)]

    def places(self, id: str, first: int, count: int) -> list[ListedPhoto]:
        """At most `count` of a list's photos after the first ones, in their order, with their places."""
        wanted = "SELECT place, image FROM listed_photos WHERE list = ? ORDER BY place LIMIT ? OFFSET ?"
        return [ListedPhoto(*row) for row in self.select(wanted, self.find(id).number, count, first)]

    def at(self, number: int, place: int) -> str | None:
        """The id of the photo at a place of the list with this number; None where there is none."""
        found: str | None = self.first("SELECT image FROM listed_photos WHERE list = ? AND place = ?", number, place)
        return found

    def queries(self, id: str) -> list[ListQuery]:
        """The queries that a list's photos were found by; none where somebody chose them otherwise."""
        number = self.find(id).number
        rows = self.select("SELECT query, words, address FROM list_queries WHERE list = ? ORDER BY query", number)
        return [ListQuery(*row) for row in rows]

    def by_token(self, token: str) -> PhotoList:
        """The list whose link has this token; `NothingFound` if there is none, or it was taken back."""
        rows = self.select(f"SELECT {_COLUMNS} FROM photo_lists WHERE link = ?", _digest(token))
        if not rows:
            raise NothingFound("this link leads to no list; ask whoever sent it for a new one")
        return _list(rows[0])

    def terms(self, token: str) -> str:
        """What `set_terms` stored of a link; "" for none."""
        return self.first("SELECT terms FROM link_terms WHERE link = ?", _digest(token)) or ""

    # -- changing -------------------------------------------------------------------------------------------

    def make(self, name: str, maker: str, images: Iterable[str], queries: Iterable[ListQuery] = ()) -> PhotoList:
        """A new list; `UsageError` if its name is taken or cannot be one, or there are too many lists or photos."""
        name, id = _name(name), secrets.token_hex(8)
        with self.transaction():
            self._refuse_taken(name, id)
            (there,) = self._sql.execute("SELECT count(*) FROM photo_lists").fetchone()
            if there >= MOST_LISTS:
                raise UsageError(f"there are {MOST_LISTS:,} lists already; delete one that nobody needs")
            self._sql.execute(
                "INSERT INTO photo_lists(id, name, folded, maker, at) VALUES (?, ?, ?, ?, ?)",
                (id, name, _folded(name), maker, time.time()),
            )
            number = self.find(id).number
            self._put(number, images, queries)
        return self.find(id)

    def add(self, id: str, images: Iterable[str], queries: Iterable[ListQuery] = ()) -> PhotoList:
        """Photos more, behind those that are there; each is on a list once."""
        with self.transaction():
            self._put(self.find(id).number, images, queries)
        return self.find(id)

    def remove(self, id: str, images: Sequence[str]) -> PhotoList:
        """Take photos off a list; those that are not on it are no error."""
        with self.transaction():
            number = self.find(id).number
            where = "list = ? AND image IN (SELECT value FROM json_each(?))"
            self._sql.execute(f"DELETE FROM listed_photos WHERE {where}", (number, json.dumps(list(images))))
            self._touch(number)
        return self.find(id)

    def set_name(self, id: str, name: str) -> PhotoList:
        """Another name; `UsageError` if it is taken or cannot be one."""
        name = _name(name)
        with self.transaction():
            one = self.find(id)
            self._refuse_taken(name, one.id)
            where = (name, _folded(name), one.number)
            self._sql.execute("UPDATE photo_lists SET name = ?, folded = ? WHERE number = ?", where)
            self._touch(one.number)
        return self.find(one.id)

    def join(self, id: str, other: str) -> PhotoList:
        """Put the photos and queries of another list behind those of this one; the other one stays."""
        with self._lock:
            return self.add(id, self.photos(other), self.queries(other))

    def delete(self, id: str) -> None:
        """Forget a list with its link. Photos and verdicts stay."""
        with self.transaction():
            number = self.find(id).number
            for table in ("listed_photos", "list_queries"):
                self._sql.execute(f"DELETE FROM {table} WHERE list = ?", (number,))
            self._sql.execute("DELETE FROM photo_lists WHERE number = ?", (number,))

    def link(self, id: str) -> str:
        """The token of a new link to a list; the link before it leads nowhere from now on."""
        token = secrets.token_urlsafe(32)
        self._set_link(id, _digest(token))
        return token

    def set_terms(self, token: str, terms: str) -> None:
        """Keep a text with a link, as what it shows and until when; that of links that ended goes."""
        there = "SELECT link FROM photo_lists WHERE link NOTNULL"
        with self.transaction():
            self._sql.execute(f"DELETE FROM link_terms WHERE link NOT IN ({there})")
            self._sql.execute("INSERT OR REPLACE INTO link_terms VALUES (?, ?)", (_digest(token), terms))

    def unlink(self, id: str) -> None:
        """Take the link to a list back."""
        self._set_link(id, None)

    def _set_link(self, id: str, digest: str | None) -> None:
        with self.transaction():
            number = self.find(id).number
            self._sql.execute("UPDATE photo_lists SET link = ? WHERE number = ?", (digest, number))

    def _put(self, number: int, images: Iterable[str], queries: Iterable[ListQuery]) -> None:
        (last,) = self._sql.execute(
            "SELECT ifnull(max(place), 0) FROM listed_photos WHERE list = ?", (number,)
        ).fetchone()
        rows = [(number, place, image) for place, image in enumerate(dict.fromkeys(images), last + 1)]
        self._sql.executemany("INSERT OR IGNORE INTO listed_photos VALUES (?, ?, ?)", rows)
        (there,) = self._sql.execute("SELECT count(*) FROM listed_photos WHERE list = ?", (number,)).fetchone()
        if there > MOST_PHOTOS:
            raise UsageError(f"a list has at most {MOST_PHOTOS:,} photos; make several")
        spelled = [(number, *query) for query in queries]
        self._sql.executemany("INSERT OR REPLACE INTO list_queries VALUES (?, ?, ?, ?)", spelled)
        self._touch(number)

    def _touch(self, number: int) -> None:
        self._sql.execute("UPDATE photo_lists SET changed = changed + 1 WHERE number = ?", (number,))

    def _refuse_taken(self, name: str, id: str) -> None:
        taken = self._sql.execute("SELECT id FROM photo_lists WHERE folded = ?", (_folded(name),)).fetchone()
        if taken is not None and taken[0] != id:
            raise UsageError(f"there is a list {name!r} already; add to that one, or choose another name")


def _list(row: Sequence[Any]) -> PhotoList:
    return PhotoList(*row)._replace(linked=bool(row[6]))


def _name(name: str) -> str:
    """A name as it is kept: one line; `UsageError` for one that is empty or too long."""
    short = " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
    if not short or len(short) > LONGEST_NAME:
        raise UsageError(f"a list has a name of 1 to {LONGEST_NAME} visible characters")
    return short


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
