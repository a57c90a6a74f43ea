"""Which photo of a shared list was handed to whom: two people do not label one photo at the same time.

Photos are handed out a few at a time, as leases. A lease that nobody renews for a while goes to whoever asks next, so
that a list comes to its end when one of its people leaves. So does a photo that its holder has skipped, for the
stopping rule goes no further than the first photo without a mark.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from hashlib import blake2b
from sqlite3 import Connection
from threading import RLock
from typing import NamedTuple

from eyespot.storage import sqlite

SCHEMA = """
CREATE TABLE IF NOT EXISTS shared_lists(query TEXT PRIMARY KEY, seed TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS list_leases(query TEXT NOT NULL, image TEXT NOT NULL, person TEXT NOT NULL,
    at REAL NOT NULL, number INTEGER PRIMARY KEY, UNIQUE(query, image, person));
"""
LAPSE = 900.0  # seconds for which a photo that was handed out waits for its label
SKIPPED = 24  # looks at photos that were handed out to somebody after an open one: then they have skipped it
PHOTOS = 240  # in groups: whoever was handed so many at once gets no further group, so that a page can show them all
TWICE = 0.1  # of the photos of a shared list are labelled by two people


class Unit(NamedTuple):
    """Photos that one person labels at once, a group or a single photo, and by how many people."""

    images: tuple[str, ...]
    people: int = 1


class Lease(NamedTuple):
    """A photo that somebody holds, since when."""

    image: str
    person: str
    at: float

    @property
    def lapsed(self) -> bool:
        """Whether it may go to somebody else."""
        return time.time() - self.at >= LAPSE


class Leases:
    """The leases of all shared lists of one ledger; any number of threads and processes may ask at once."""

    def __init__(self, sql: Connection, lock: RLock) -> None:
        self._sql, self._lock = sql, lock

    def share(self, query: str) -> str:
        """Make a list shared; gives its seed, which stays the same."""
        with self._lock:
            self._sql.execute("INSERT OR IGNORE INTO shared_lists VALUES (?, ?)", (query, secrets.token_hex(8)))
            (seed,) = self._sql.execute("SELECT seed FROM shared_lists WHERE query = ?", (query,)).fetchone()
        return str(seed)

    def seed(self, query: str) -> str | None:
        """The seed of a shared list; None for a list that nobody has shared."""
        with self._lock:
            row = self._sql.execute("SELECT seed FROM shared_lists WHERE query = ?", (query,)).fetchone()
        return None if row is None else str(row[0])

    def leases(self, query: str) -> list[Lease]:
        """All leases of a list, the earliest first."""
        statement = "SELECT image, person, at FROM list_leases WHERE query = ? ORDER BY number"
        with self._lock:
            return [Lease(*row) for row in self._sql.execute(statement, (query,))]

    def renew(self, query: str, person: str, labelled: Collection[str], grouped: Collection[str] = ()) -> None:
        """Let the leases of somebody who is at work begin anew; those that have lapsed stay lapsed.

        `labelled` are the photos that they have labelled, `grouped` those of them that got the mark of their group: a
        group is one look. What they have skipped lapses.
        """
        now, later, skipped = time.time(), 0, list[tuple[str, str, str]]()
        with self._lock, sqlite.transaction(self._sql):
            for lease in reversed([one for one in self.leases(query) if one.person == person]):
                later += lease.image in labelled and lease.image not in grouped
                if later >= SKIPPED and lease.image not in labelled:
                    skipped.append((query, lease.image, person))
            self._sql.execute(
                "UPDATE list_leases SET at = ? WHERE query = ? AND person = ? AND at > ?",
                (now, query, person, now - LAPSE),
            )
            self._sql.executemany("UPDATE list_leases SET at = 0 WHERE query = ? AND image = ? AND person = ?", skipped)

    def hand_out(
        self, query: str, person: str, units: Sequence[Unit], labelled: Collection[tuple[str, str]], most: int
    ) -> int:
        """Hand somebody the next units of a list, `most` of them or some `PHOTOS`; gives how many photos there were.

        `labelled` are the labels there are, as photo and person.
        """
        now, handed, looks = time.time(), list[str](), 0
        with self._lock, sqlite.transaction(self._sql):
            leases = self.leases(query)
            mine = {image for image, labeller in labelled if labeller == person}
            mine |= {lease.image for lease in leases if lease.person == person and not lease.lapsed}
            held = {(lease.image, lease.person) for lease in leases if not lease.lapsed}
            taken = Counter(image for image, _ in held.union(labelled))
            for unit in units:
                if looks == most or len(handed) >= PHOTOS:
                    break
                free = [image for image in unit.images if image not in mine and taken[image] < unit.people]
                handed += free
                looks += bool(free)
            self._sql.executemany(
                "INSERT OR REPLACE INTO list_leases(query, image, person, at) VALUES (?, ?, ?, ?)",
                [(query, image, person, now) for image in handed],
            )
        return len(handed)


def is_twice(seed: str, image: str, share: float = TWICE) -> bool:
    """Whether two people label a photo: a choice at random that is the same whatever else is on the list."""
    digest = blake2b(f"{seed} {image}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64
