"""Who works at an audit, and which of its photos was handed to whom: no photo to two people unless that is wanted.

Photos are handed out a few at a time, in the order in which they were drawn. What somebody holds for a while without
labelling it goes to whoever asks next, so that an audit comes to its end when one of its people leaves.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import RLock

from eyespot.storage import sqlite

SCHEMA = """
CREATE TABLE IF NOT EXISTS audit_people(audit INTEGER NOT NULL, person TEXT NOT NULL, number INTEGER PRIMARY KEY,
    UNIQUE(audit, person));
CREATE TABLE IF NOT EXISTS audit_shares(audit INTEGER NOT NULL, image TEXT NOT NULL, person TEXT NOT NULL,
    at REAL NOT NULL, number INTEGER PRIMARY KEY, UNIQUE(audit, image, person));
CREATE TABLE IF NOT EXISTS audit_twice(audit INTEGER PRIMARY KEY, images TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS audit_lists(audit INTEGER PRIMARY KEY, listed INTEGER NOT NULL);
"""
LAPSE = 900.0  # seconds for which a photo that was handed out waits for its label


class AuditShares:
    """The shares of all audits of one ledger; any number of threads and processes may ask at once."""

    def __init__(self, path: Path) -> None:
        self._sql = sqlite.connect(path, SCHEMA)
        self._lock = RLock()

    def close(self) -> None:
        """Let go of the file."""
        self._sql.close()

    # -- people ---------------------------------------------------------------------------------------------

    def join(self, audit: int, people: Sequence[str]) -> None:
        """Let these people work at an audit, too."""
        with self._lock, sqlite.transaction(self._sql):
            self._sql.executemany(
                "INSERT OR IGNORE INTO audit_people(audit, person) VALUES (?, ?)",
                [(audit, person) for person in people],
            )

    def people(self, audit: int) -> list[str]:
        """Who joined, in the order in which they came."""
        with self._lock:
            rows = self._sql.execute("SELECT person FROM audit_people WHERE audit = ? ORDER BY number", (audit,))
            return [person for (person,) in rows]

    # -- the list -------------------------------------------------------------------------------------------

    def note_list(self, audit: int, listed: int) -> None:
        """Remember how many photos were on the list at the draw: what is listed later is no part of its rest."""
        with self._lock, sqlite.transaction(self._sql):
            self._sql.execute("INSERT INTO audit_lists VALUES (?, ?)", (audit, listed))

    def listed(self, audit: int) -> int:
        """How many photos were on the list at the draw, at least: 0 for an audit of earlier versions."""
        with self._lock:
            row = self._sql.execute("SELECT listed FROM audit_lists WHERE audit = ?", (audit,)).fetchone()
        return 0 if row is None else int(row[0])

    # -- photos ---------------------------------------------------------------------------------------------

    def label_twice(self, audit: int, images: Sequence[str]) -> None:
        """Ask for the labels of two people on these photos."""
        with self._lock, sqlite.transaction(self._sql):
            self._sql.execute("INSERT INTO audit_twice VALUES (?, ?)", (audit, json.dumps(list(images))))

    def twice(self, audit: int) -> set[str]:
        """The photos that two people label."""
        with self._lock:
            row = self._sql.execute("SELECT images FROM audit_twice WHERE audit = ?", (audit,)).fetchone()
        return set() if row is None else set(json.loads(row[0]))

    def release(self, audit: int, images: Collection[str]) -> None:
        """Wait no longer for the labels of a second person on these photos."""
        with self._lock, sqlite.transaction(self._sql):
            left = [image for image in self.twice(audit) if image not in images]
            self._sql.execute("UPDATE audit_twice SET images = ? WHERE audit = ?", (json.dumps(sorted(left)), audit))

    def of(self, audit: int, person: str) -> list[str]:
        """The photos that were handed to somebody, in the order in which they got them."""
        with self._lock:
            rows = self._sql.execute(
                "SELECT image FROM audit_shares WHERE audit = ? AND person = ? ORDER BY number", (audit, person)
            )
            return [image for (image,) in rows]

    def hand_out(
        self, audit: int, person: str, photos: Sequence[str], labelled: Collection[tuple[str, str]], most: int
    ) -> int:
        """Hand somebody the next photos of an audit; gives how many there were.

        `labelled` are the labels there are, as photo and person. What others hold unlabelled is theirs until it lapses.
        """
        twice, now = self.twice(audit), time.time()
        with self._lock, sqlite.transaction(self._sql):
            rows = self._sql.execute("SELECT image, person, at FROM audit_shares WHERE audit = ?", (audit,)).fetchall()
            mine = {image for image, holder, _ in rows if holder == person}
            mine |= {image for image, labeller in labelled if labeller == person}
            held = {(image, holder) for image, holder, at in rows if now - at < LAPSE}
            taken = Counter(image for image, _ in held.union(labelled))
            free = (image for image in photos if image not in mine and taken[image] < 1 + (image in twice))
            handed = [image for image, _ in zip(free, range(most), strict=False)]
            self._sql.executemany(
                "INSERT INTO audit_shares(audit, image, person, at) VALUES (?, ?, ?, ?)",
                [(audit, image, person, now) for image in handed],
            )
        return len(handed)
