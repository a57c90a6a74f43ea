"""Who searches the vectors of a server: this process, an approximate index of the owner's choice, or workers on Ray."""

from __future__ import annotations

from eyespot.gallery.view import Gallery
from eyespot.search.collection import Collection
from eyespot.search.index_choice import EXACT, folder_of, read_stored
from eyespot.types import UsageError
from eyespot.web._settings import ServerSettings


def refuse_unknown_index(settings: ServerSettings) -> None:
    """`UsageError` if the space that is searched unasked has no index of the owner's choice."""
    if settings.index != EXACT:
        gallery = Gallery(settings.gallery)
        read_stored(gallery.view(gallery.stem(settings.encoder)), settings.index)


class SearchTier:
    """What all snapshots of a server are searched by."""

    def __init__(self, settings: ServerSettings) -> None:
        """Connects to the cluster, if one is named; `EyespotError` if it does not answer."""
        self._gallery, self._index = settings.gallery, settings.index
        if settings.ray is not None and settings.index != EXACT:
            raise UsageError("workers on Ray search exactly, and an index by this process; leave out --ray, or --index")
        refuse_unknown_index(settings)
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
            collection.means = self._backend
        return collection

    @property
    def health(self) -> str:
        """A sentence on the workers; empty where there are none."""
        if self._link is None:
            return ""
        if notes := self._link.notes:
            return f"{notes[0]}\n"
        return f"{self._link.alive()} of {self._link.workers} workers on Ray answer\n"

    def text(self) -> str:
        """How the workers fare, in the text format of Prometheus."""
        return "" if self._link is None else self._link.text()

    def close(self) -> None:
        """End the workers."""
        if self._link is not None:
            self._link.close()
