"""What a stage needs of a collection; `eyespot.Collection` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eyespot.gallery.filters import Condition
    from eyespot.gallery.view import Gallery, View
    from eyespot.gallery.word_index import WordIndex
    from eyespot.search.label_learning import Contrast
    from eyespot.types import AdaptedQuery, Encoder, Index, Mask, NearestRows, ScanRequest


class Scan(Protocol):
    """Adapted queries to nearest rows, exactly."""

    exact: bool

    def search(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query among those the mask lets through."""

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """The same for each of several adapted queries with their own k and mask, which share readings."""

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int]) -> NDArray[np.floating[Any]]:
        """The scores of these rows, (rows,)."""


class Searchable(Protocol):
    """One space of a gallery, ready to be searched."""

    gallery: Gallery
    view: View

    @property
    def encoder(self) -> Encoder:
        """The encoder that made the space."""

    @property
    def index(self) -> Index:
        """Vectors to nearest rows."""

    @property
    def scan(self) -> Scan:
        """Exact search under adapted queries."""

    @property
    def words(self) -> WordIndex:
        """Words to rows."""

    @property
    def contrast(self) -> Contrast:
        """A sample of the rows, with which labelled photos are contrasted."""

    def allowed(self, where: str | Condition | Mask | None = None) -> Mask:
        """The rows that a search may find, (rows,)."""
