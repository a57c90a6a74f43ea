"""Photos, their facts and their vectors in a folder on disk."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Options, Summary, index
    from eyespot.gallery.view import Gallery, View

__all__ = ["Gallery", "Options", "Summary", "View", "index"]

if not TYPE_CHECKING:  # so that type checkers refuse a name that is not there
    __getattr__ = lazy(
        __name__, {"Gallery": "view", "Options": "indexing", "Summary": "indexing", "View": "view", "index": "indexing"}
    )
