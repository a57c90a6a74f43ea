"""The ledger of a gallery as a server has it open, also where it may not be written."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from threading import RLock

from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import Judgements
from eyespot.ledger.photo_lists import PhotoLists
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
