"""What each person searched for last, and the searches that they saved under a name.

It lies in a file of its own beside the ledger: it is about people and no part of what is judged or published. A person
sees their own searches alone and can delete them; the oldest unsaved ones go by themselves.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from eyespot.ledger.sqlite_file import SqliteFile
from eyespot.types import NothingFound, UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS searched(number INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL,
    address TEXT NOT NULL, heading TEXT NOT NULL, photos INTEGER NOT NULL, at REAL NOT NULL, name TEXT,
    UNIQUE(person, address));
CREATE INDEX IF NOT EXISTS searched_of ON searched(person, at);
CREATE TABLE IF NOT EXISTS history_off(person TEXT PRIMARY KEY);
"""
RECENT, SAVED = 200, 500  # searches of one person
EVERYBODY = 100_000  # unsaved searches of all people
LONGEST_NAME = 120  # characters


class PastSearch(NamedTuple):
    """A search as it was last made: the address that makes it again, its words, how many photos, when (Unix time).

    `name` is what its person saved it as; None for what is only remembered.
    """

    number: int
    address: str
    heading: str
    photos: int
    at: float
    name: str | None


class SearchHistory(SqliteFile):
    """The searches of all people in one file; any number of threads may work at it at once."""

    what, schema = "the history", SCHEMA

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sql.execute("PRAGMA secure_delete=ON")  # what is deleted is overwritten

    def record(self, person: str, address: str, heading: str, photos: int) -> None:
        """Remember a search, now; the same one again moves to the front. Nothing where the person does not want it."""
        if not self.wanted(person):
            return
        with self.transaction():
            self._sql.execute(
                "INSERT INTO searched(person, address, heading, photos, at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT(person, address) DO UPDATE SET photos = excluded.photos, at = excluded.at",
                (person, address, heading, photos, time.time()),
            )
            unsaved = "SELECT number FROM searched WHERE name IS NULL"
            for where, most in ((" AND person = ?", RECENT), ("", EVERYBODY)):
                old = f"{unsaved}{where} ORDER BY at DESC, number DESC LIMIT -1 OFFSET {most}"
                self._sql.execute(f"DELETE FROM searched WHERE number IN ({old})", (person,) if where else ())

    def recent(self, person: str, most: int = RECENT) -> list[PastSearch]:
        """The person's searches, the latest first."""
        return self._searches("person = ? ORDER BY at DESC, number DESC LIMIT ?", person, most)

    def saved(self, person: str) -> list[PastSearch]:
        """The searches that the person saved, by name."""
        return self._searches("person = ? AND name IS NOT NULL ORDER BY name COLLATE NOCASE, number", person)

    def _searches(self, where: str, *values: object) -> list[PastSearch]:
        rows = self.select(f"SELECT number, address, heading, photos, at, name FROM searched WHERE {where}", *values)
        return [PastSearch(*row) for row in rows]

    def save(self, person: str, number: int, name: str) -> None:
        """Keep a search of the person under a name; `UsageError` for too many and for what is no name."""
        short = " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
        if not short or len(short) > LONGEST_NAME:
            raise UsageError(f"a saved search has a name of 1 to {LONGEST_NAME} visible characters")
        if len(self.saved(person)) >= SAVED:
            raise UsageError(f"you have saved {SAVED} searches; delete one first")
        self._change("UPDATE searched SET name = ? WHERE person = ? AND number = ?", short, person, number)

    def unsave(self, person: str, number: int) -> None:
        """Take the name away; the search is remembered like any other."""
        self._change("UPDATE searched SET name = NULL WHERE person = ? AND number = ?", person, number)

    def forget(self, person: str, number: int) -> None:
        """Delete one search of the person, saved or not."""
        self._change("DELETE FROM searched WHERE person = ? AND number = ?", person, number)

    def _change(self, statement: str, *values: object) -> None:
        with self.transaction():
            if not self._sql.execute(statement, values).rowcount:
                raise NothingFound("there is no such search in your history; it may have been deleted")

    def clear(self, person: str) -> None:
        """Delete all searches of the person that are not saved."""
        with self._lock:
            with self.transaction():
                self._sql.execute("DELETE FROM searched WHERE person = ? AND name IS NULL", (person,))
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log holds no copy either

    def wanted(self, person: str) -> bool:
        """Whether the person's searches are remembered."""
        return not self.select("SELECT 1 FROM history_off WHERE person = ?", person)

    def stop(self, person: str) -> None:
        """Remember no search of the person from now on."""
        with self.transaction():
            self._sql.execute("INSERT OR IGNORE INTO history_off VALUES (?)", (person,))

    def go_on(self, person: str) -> None:
        """Remember the person's searches again."""
        with self.transaction():
            self._sql.execute("DELETE FROM history_off WHERE person = ?", (person,))
