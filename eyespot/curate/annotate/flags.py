"""Flags: what should keep a photo out of a collection, such as a face, with who saw it and when.

Annotators of INQUIRE found such photos while they labelled (appendix H.1). The table that `write_flags` makes is what
`eyespot build inat --flagged` takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from sqlite3 import Connection
from threading import RLock
from typing import NamedTuple

from eyespot.storage import sqlite
from eyespot.storage.tables import write_csv
from eyespot.types import UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS photo_flags(number INTEGER PRIMARY KEY, image TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, person TEXT NOT NULL, at REAL NOT NULL, raised INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS photo_flags_image ON photo_flags(image);
"""
KINDS = {"face": "a face", "personal": "personal data", "not-photo": "not a photo", "other": "another reason"}
LONGEST_REASON = 300  # characters
COLUMNS = ("photo", "file_name", "flag", "reason", "person", "time", "image_id")


class Flag(NamedTuple):
    """What somebody saw on a photo, and when, in seconds since 1970."""

    image: str
    kind: str
    reason: str
    person: str
    at: float

    @property
    def words(self) -> str:
        """What it says, for people."""
        return f"{KINDS[self.kind]}: {self.reason}" if self.reason else KINDS[self.kind]


class Flags:
    """The flags of one ledger. Nothing is deleted: a flag that is taken down stays as history."""

    def __init__(self, sql: Connection, lock: RLock) -> None:
        self._sql, self._lock = sql, lock

    def put(self, image: str, kind: str, person: str, reason: str = "") -> bool:
        """Flag a photo; whether that is new. `UsageError` for an unknown kind, and another reason without words."""
        reason = " ".join(reason.split())
        if kind not in KINDS:
            raise UsageError(f"a flag is one of {', '.join(KINDS)}, not {kind!r}")
        if kind == "other" and not reason:
            raise UsageError("another reason needs words: say what is wrong with the photo")
        if len(reason) > LONGEST_REASON or not reason.isprintable():
            raise UsageError(f"a reason has at most {LONGEST_REASON} printable characters; write a shorter one")
        return self._put(Flag(image, kind, reason, person, time.time()), raised=True)

    def take_down(self, image: str, kind: str, person: str) -> bool:
        """Take somebody's flag down; whether there was one."""
        return self._put(Flag(image, kind, "", person, time.time()), raised=False)

    def _put(self, flag: Flag, *, raised: bool) -> bool:
        with self._lock, sqlite.transaction(self._sql):
            same = [one for one in self.of([flag.image]) if one[:4] == flag[:4]]
            mine = [one for one in self.of([flag.image]) if (one.kind, one.person) == (flag.kind, flag.person)]
            if same if raised else not mine:
                return False
            self._sql.execute(
                "INSERT INTO photo_flags(image, kind, reason, person, at, raised) VALUES (?, ?, ?, ?, ?, ?)",
                (*flag, int(raised)),
            )
        return True

    def of(self, images: Iterable[str]) -> list[Flag]:
        """The flags of some photos that stand, the earliest first."""
        wanted = list(dict.fromkeys(images))
        return [flag for image in wanted for flag in self._standing("WHERE image = ?", image)]

    def all(self) -> list[Flag]:
        """All flags that stand, the earliest first."""
        return self._standing("")

    def images(self) -> set[str]:
        """The photos that somebody flagged."""
        return {flag.image for flag in self.all()}

    def _standing(self, where: str, *values: str) -> list[Flag]:
        statement = f"SELECT image, kind, reason, person, at, raised FROM photo_flags {where} ORDER BY number"
        with self._lock:
            rows = self._sql.execute(statement, values).fetchall()
        last: dict[tuple[str, str, str], Flag] = {}
        for image, kind, reason, person, at, raised in rows:
            last.pop((image, kind, person), None)
            if raised:
                last[image, kind, person] = Flag(image, kind, reason, person, at)
        return list(last.values())


def write_flags(file: Path, flags: Iterable[Flag], path_of: Callable[[str], str]) -> int:
    """The flags as a table that `build inat --flagged` takes; gives how many rows it has.

    The column photo is the name of the photo's file without its ending, which in iNaturalist's export is its id.
    """
    rows = list(_rows(flags, path_of))
    write_csv(file, [COLUMNS, *rows])
    return len(rows)


def _rows(flags: Iterable[Flag], path_of: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
    for flag in flags:
        name = PurePosixPath(path_of(flag.image) or flag.image)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(flag.at))
        yield name.stem, name.name, flag.kind, flag.reason, flag.person, when, flag.image
