"""Clicks on a search's photos: more like this, or not this. What somebody last clicked counts.

A click says what a search should go by. It is not a verdict: it has no part in qrels, agreement or calibration.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from eyespot.ledger.sqlite_file import SqliteFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS clicks(number INTEGER PRIMARY KEY, query TEXT NOT NULL, person TEXT NOT NULL,
    image TEXT NOT NULL, likes INTEGER NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS clicks_query ON clicks(query);
"""


class Clicks(SqliteFile):
    """The clicks of one ledger; any number of threads and processes may work at them at once."""

    what, schema = "clicks", SCHEMA

    def record(self, query: str, person: str, images: Iterable[str], likes: bool | None) -> None:
        """Keep what a person (`person:NAME`) clicked for the query of this digest; None takes it back."""
        number, now = {True: 1, False: -1, None: 0}[likes], time.time()
        rows = [(query, person, image, number, now) for image in images]
        self.change("INSERT INTO clicks(query, person, image, likes, at) VALUES (?, ?, ?, ?, ?)", rows)

    def last(self, query: str) -> dict[str, dict[str, bool]]:
        """What people last clicked for the query of this digest: person → image → whether they like it."""
        last = "SELECT max(number) FROM clicks WHERE query = ? GROUP BY person, image"
        clicked = f"SELECT person, image, likes FROM clicks WHERE likes AND number IN ({last}) ORDER BY number"
        found: dict[str, dict[str, bool]] = {}
        for person, image, likes in self.select(clicked, query):
            found.setdefault(person, {})[image] = likes > 0
        return found

    def latest(self, query: str) -> int:
        """The number of the last click for the query of this digest, 0 where there is none; it grows with each."""
        return int(self.first("SELECT ifnull(max(number), 0) FROM clicks WHERE query = ?", query))
