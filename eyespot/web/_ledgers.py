"""What a server keeps in SQLite: the gallery's ledger, also where it may not be written, and people's searches."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from threading import BoundedSemaphore, Lock, RLock

from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import Judgements
from eyespot.ledger.photo_lists import PhotoLists
from eyespot.ledger.search_history import PastSearch, SearchHistory
from eyespot.types import EyespotError


class LedgerTables:
    """What one ledger file keeps; `EyespotError` if it cannot be written."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as opened:
            self.judgements = opened.enter_context(Judgements(path))
            self.lists = opened.enter_context(PhotoLists(path))
            self.clicks = opened.enter_context(Clicks(path))
            self.close = opened.pop_all().close


class ServedLedger:
    """The ledger of a gallery, opened when somebody first needs it; any number of threads may ask."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opening, self._opened = RLock(), ExitStack()

    @property
    def writable(self) -> LedgerTables:
        """For whoever writes; `EyespotError` if the ledger cannot be written."""
        with self._opening:
            return self._itself

    @property
    def readable(self) -> LedgerTables:
        """For whoever only reads; where the ledger cannot be written, a copy of it as it was when first asked for."""
        with self._opening:
            try:
                return self._itself
            except EyespotError as error:
                with suppress(EyespotError, OSError):
                    return self._copy
                raise error

    @cached_property
    def _itself(self) -> LedgerTables:
        tables = LedgerTables(self.path)
        self._opened.callback(tables.close)
        return tables

    @cached_property
    def _copy(self) -> LedgerTables:
        with ExitStack() as opened:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="eyespot-ledger-")))
            # What a killed server wrote last still stands in the log beside the ledger.
            for source in (self.path, self.path.with_name(f"{self.path.name}-wal")):
                if source.is_file():
                    shutil.copyfile(source, folder / source.name)
            tables = LedgerTables(folder / self.path.name)
            opened.callback(tables.close)
            self._opened.push(opened.pop_all())
        return tables

    def close(self) -> None:
        """Let go of the files."""
        self._opened.close()


WAITING = 1_000  # searches that may wait for the disk; more are not remembered
SHOWN = 6  # searches on the start page


class HistoryWriter:
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
