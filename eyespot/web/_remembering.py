"""Searches are remembered behind the answer, so that nobody waits for the disk; the last one may be lost in a kill."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock

from eyespot.ledger.search_history import PastSearch, SearchHistory
from eyespot.types import EyespotError

WAITING = 1_000  # searches that may wait for the disk; more are not remembered
SHOWN = 6  # searches on the start page


class Remembering:
    """The history of a server, opened when somebody first searches or looks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: SearchHistory | None = None
        self._opening, self._places = Lock(), BoundedSemaphore(WAITING)
        self.writer = ThreadPoolExecutor(1, "history")

    def open(self) -> SearchHistory:
        """The history; `EyespotError` where the file cannot be opened."""
        with self._opening:
            if self._opened is None:
                try:
                    self._opened = SearchHistory(self.path)
                except (sqlite3.Error, OSError) as error:
                    raise EyespotError(f"the history cannot be kept in {self.path.name} ({error})") from None
            return self._opened

    def note(self, person: str, address: str, heading: str, photos: int) -> None:
        """Remember a search soon."""
        if not self._places.acquire(blocking=False):
            return

        def write() -> None:
            try:
                with suppress(EyespotError, sqlite3.Error):  # a full disk costs the memory of a search alone
                    self.open().record(person, address, heading, photos)
            finally:
                self._places.release()

        self.writer.submit(write)

    def latest(self, person: str) -> list[PastSearch]:
        """The first few for the start page: saved ones, then recent ones; none where the file cannot be read."""
        with suppress(EyespotError, sqlite3.Error):
            history = self.open()
            saved = history.saved(person)[:SHOWN]
            return [*saved, *(one for one in history.recent(person, 2 * SHOWN) if one.name is None)][:SHOWN]
        return []

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        self.writer.shutdown()
        if self._opened is not None:
            self._opened.close()
