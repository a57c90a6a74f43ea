"""Indexes: vectors to nearest rows; a file here is an index, its `load(vectors, **options)` opens it."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.indexes._batches import allowed, positive
    from eyespot.indexes._coded import CodedProducts
    from eyespot.indexes.exact import Exact

__all__ = ["CodedProducts", "Exact", "allowed", "positive"]

if not TYPE_CHECKING:  # so that type checkers refuse a name that is not there
    __getattr__ = lazy(
        __name__, {"CodedProducts": "_coded", "Exact": "exact", "allowed": "_batches", "positive": "_batches"}
    )
