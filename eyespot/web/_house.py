"""What all pages share: the gallery opened for reading, its ledger, its small pictures, and what is being looked at."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock, Thread

from fastapi import Request

from eyespot.gallery import disk
from eyespot.gallery.opened import Gallery
from eyespot.ledger.judgements import Judgements
from eyespot.search.collection import Collection
from eyespot.types import EyespotError, Judgement
from eyespot.web._asking import Asked, query_of, refuse
from eyespot.web._counts import Counts
from eyespot.web._judging import verdicts_on
from eyespot.web._settings import Settings
from eyespot.web.found.facets import facets_of
from eyespot.web.found.results import Frozen, Results
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures.thumbnails import Thumbnails


class House:
    """One gallery being served."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.gallery = Gallery(settings.gallery)
        self.gallery.stem(settings.encoder)  # an encoder that is not there is told now and not to every visitor
        self.counts, self.results = Counts(), Results()
        self.ready, self.unready = False, "the gallery is still being opened; come again in a moment"
        self._snapshots: dict[str, Snapshot] = {}
        self._opening = Lock()

    @cached_property
    def kept(self) -> Path:
        """A folder for thumbnails, uploads and copies of facts; a passing one where the gallery may not be written."""
        place = self.settings.kept
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError:
            return self._passing()
        return place if os.access(place, os.W_OK) else self._passing()

    def _passing(self) -> Path:
        self._temporary = tempfile.TemporaryDirectory(prefix="eyespot-web-")
        return Path(self._temporary.name)

    @property
    def pictures(self) -> Path:
        """Where uploaded pictures lie."""
        return self.kept / "pictures"

    @cached_property
    def thumbnails(self) -> Thumbnails:
        """The small pictures."""
        return Thumbnails(self.kept / "thumbnails")

    @cached_property
    def judgements(self) -> Judgements:
        """The judgements in the gallery's ledger; `EyespotError` if it cannot be written."""
        with self._opening:
            return Judgements(self.settings.ledger)

    @property
    def encoders(self) -> list[str]:
        """The encoders whose spaces can be searched, the one that is taken unasked first."""
        chosen = self.settings.encoder or self.gallery.encoders[0]
        return sorted(self.gallery.encoders, key=lambda name: name != chosen)

    def snapshot(self, encoder: str | None = None) -> Snapshot:
        """The gallery as it is now in one encoder's space; `UsageError` if it has none of that encoder.

        It is opened anew when somebody has indexed; who holds the old one keeps it.
        """
        name, version = encoder or self.encoders[0], _version(self.settings.gallery)
        with self._opening:
            known = self._snapshots.get(name)
            if known is None or known.version != f"{name} {version}":
                self._snapshots[name] = self._opened(name, f"{name} {version}", known)
            return self._snapshots[name]

    def _opened(self, name: str, version: str, known: Snapshot | None) -> Snapshot:
        collection = Collection(self.settings.gallery, name)
        if known is not None and known.view.space == collection.view.space:
            collection.encoder = known.collection.encoder  # loading a large one again would take minutes
        made = Snapshot(collection, self.kept / "facts", version)
        made.prepare()
        facets_of(made)
        self.gallery = collection.gallery
        return made

    def found(self, asked: Asked) -> Frozen:
        """The result of a search, frozen; `Problem` for one with words that the owner refuses."""
        refuse(asked.q, self.settings.refused)
        return self.results.freeze(asked, self.snapshot(asked.encoder), self.pictures)

    def verdicts(self, asked: Asked, items: Sequence[str], judge: str) -> dict[str, Judgement]:
        """What somebody last said of these items for the words and the picture of a search."""
        return verdicts_on(self.judgements, query_of(asked, self.pictures), items, judge)

    def prepare(self) -> None:
        """Load in the background what the first search would wait for."""
        Thread(target=self._prepare, daemon=True).start()

    def _prepare(self) -> None:
        try:
            self.snapshot()
        except EyespotError as error:  # who searches is told the same
            self.unready = str(error)
        else:
            self.ready = True

    def close(self) -> None:
        """Finish what is being written."""
        if "judgements" in self.__dict__:
            self.judgements.close()


def _version(gallery: Path) -> str:
    """What changes whenever something was indexed."""
    places = [gallery / "gallery.toml", *(shard / "items.parquet" for shard in disk.shard_paths(gallery))]
    return " ".join(f"{place.stat().st_mtime_ns:x}" for place in places if place.exists())


def house_of(request: Request) -> House:
    """The house of this application, as a dependency."""
    house: House = request.app.state.house
    return house
