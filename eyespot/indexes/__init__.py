"""Indexes: vectors to nearest rows; a file here is an index, its `load(vectors, **options)` opens it."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.indexes._asked import allowed, positive
    from eyespot.indexes._coded import CodedProducts

__all__ = [
    "CodedProducts",
    "allowed",
    "positive",
]

__getattr__ = lazy(
    __name__,
    {
        "CodedProducts": "_coded",
        "allowed": "_asked",
        "positive": "_asked",
    },
)
