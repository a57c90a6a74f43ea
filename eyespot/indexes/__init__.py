"""Indexes: vectors to nearest rows; a file here is an index, its `load(vectors, **options)` opens it."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.indexes._coded import CodedProducts as CodedProducts
    from eyespot.indexes.exact import Exact as Exact
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_coded": "CodedProducts",
            "exact": "Exact",
        },
    )
