"""The gallery as a server has it open: a snapshot for each encoder, opened anew when somebody has indexed.

Vectors are searched by this process, by an approximate index of the owner's choice, or by workers on Ray.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread

from eyespot.gallery import disk
from eyespot.gallery.view import Gallery
from eyespot.search.collection import Collection
from eyespot.search.index_choice import EXACT, folder_of, read_stored
from eyespot.types import EyespotError, UsageError, quantity
from eyespot.web._settings import ServerSettings
from eyespot.web.found.facets import facets_of
from eyespot.web.found.masks import FactStore
from eyespot.web.found.snapshot import Snapshot, too_many_files

LOADING = 30  # seconds that the end waits for what is being loaded


class SearchTier:
    """What all snapshots of a server are searched by."""

    def __init__(self, settings: ServerSettings) -> None:
        """Connects to the cluster, if one is named; `EyespotError` if it does not answer.

        `UsageError` if the space that is searched unasked has no index of the owner's choice.
        """
        self._gallery, self._index = settings.gallery, settings.index
        if self._index != EXACT:
            if settings.ray is not None:
                raise UsageError("workers on Ray search exactly, an index by this process; leave out --ray or --index")
            gallery = Gallery(settings.gallery)
            read_stored(gallery.view(gallery.stem(settings.encoder)), self._index)
        self._link = None
        if settings.ray is not None:
            from eyespot.cluster.link import RayLink
            from eyespot.cluster.linked import LinkedBackend

            self._link = RayLink(settings.ray, settings.workers)
            self._backend = LinkedBackend(self._link)

    def collection(self, encoder: str) -> Collection:
        """The gallery as it is now, in one encoder's space."""
        collection = Collection(self._gallery, encoder, self._index)
        if self._index != EXACT and not folder_of(collection.view, self._index).is_dir():
            # Another space than the one that the owner chose it for
            collection = Collection(self._gallery, encoder)
        if self._link is not None:
            collection.backend = self._backend
        return collection

    @property
    def health(self) -> str:
        """A sentence on the workers; empty where there are none."""
        if self._link is None:
            return ""
        if notes := self._link.notes:
            return f"{notes[0]}\n"
        return f"{self._link.alive()} of {quantity(self._link.workers, 'worker')} on Ray answer\n"

    def close(self) -> None:
        """End the workers."""
        if self._link is not None:
            self._link.close()


class Snapshots:
    """The snapshots of a server; any number of threads may ask."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings, self.gallery = settings, Gallery(settings.gallery)
        self.gallery.stem(settings.encoder)  # an encoder that is not there is an error now and not for every visitor
        self.tier, self.facts = SearchTier(settings), FactStore()
        self.ready, self.unready = False, "the gallery is still being opened; come again in a moment"
        self._known: dict[str, Snapshot] = {}
        self._opening = Lock()
        self._loading: Thread | None = None

    @property
    def encoders(self) -> list[str]:
        """The encoders whose spaces can be searched, the one that is taken unasked first."""
        chosen = self.settings.encoder or self.gallery.encoders[0]
        return sorted(self.gallery.encoders, key=lambda name: name != chosen)

    def current(self, encoder: str | None = None) -> Snapshot:
        """The gallery as it is now in one encoder's space; `UsageError` if it has none of that encoder.

        It is opened anew when somebody has indexed; who holds the old one keeps it. Where its files cannot be opened
        beside those of the old one, that stays, and its notes say so.
        """
        name = encoder or self.encoders[0]
        folder = self.settings.gallery
        # What changes whenever something was indexed
        names = ("items.parquet", disk.ROW_STORE[0])
        written = []
        places = [shard / name for shard in disk.shard_paths(folder) for name in names]
        for place in (folder / "gallery.toml", folder / "names.sqlite", *places):
            with suppress(FileNotFoundError, NotADirectoryError):
                written.append(f"{place.stat().st_mtime_ns:x}")
        version = " ".join([name, *written])
        with self._opening:
            known = self._known.get(name)
            if known is not None and version in (known.version, known.missed):
                return known
            collection = self.tier.collection(name)
            if wrong := too_many_files(collection.view):
                if known is None:
                    raise EyespotError(wrong)
                known.missed, known.why_missed = version, wrong
                return known
            if known is not None and known.view.space == collection.view.space:
                collection.encoder = known.collection.encoder  # loading a large one again would take minutes
            made = Snapshot(collection, self.facts, version)
            made.prepare()
            facets_of(made)
            self.gallery, self._known[name] = collection.gallery, made
            return made

    def prepare(self) -> None:
        """Load in the background what the first search would wait for."""

        def load() -> None:
            try:
                self.current()
            except EyespotError as error:  # who searches gets the same error
                self.unready = str(error)
            else:
                self.ready = True

        self._loading = Thread(target=load, daemon=True)
        self._loading.start()

    def close(self) -> None:
        """Stop filters and workers, and wait for what is being loaded."""
        self.facts.masks.close()
        if self._loading is not None:
            self._loading.join(LOADING)  # Python aborts if it ends around a thread that loads a library
        self.tier.close()
