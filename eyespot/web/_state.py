"""What the pages of one server share, by theme: snapshots, the ledger, searches, judges, and what runs beside them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from eyespot.web._indexer import Indexer
from eyespot.web._judges import Jobs, open_adapters, open_judges
from eyespot.web._ledgers import ServedLedger
from eyespot.web._searches import Searches
from eyespot.web._settings import ServerSettings
from eyespot.web._snapshots import Snapshots
from eyespot.web.pictures import CacheFolder


class AppState:
    """One gallery being served."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.snapshots = Snapshots(settings)
        self.ledger, self.cache = ServedLedger(settings.ledger), CacheFolder(settings.cache or settings.gallery / "web")
        self.adapters = open_adapters(settings.adapters, self.snapshots.gallery)
        self.judges, self.jobs = open_judges(settings.judging), Jobs()
        self.searches = Searches(self.snapshots, self.ledger, self.cache, adapters=self.adapters, judges=self.judges)
        self.indexer = Indexer(settings.gallery)

    def close(self) -> None:
        """Finish what is being written, and ask nobody any more."""
        self.jobs.close()
        self.indexer.close()
        self.snapshots.close()
        self.ledger.close()


def app_state(request: Request) -> AppState:
    """The state of this application, as a dependency."""
    state: AppState = request.app.state.eyespot
    return state


State = Annotated[AppState, Depends(app_state)]
