"""Photos, their facts and their vectors in a folder on disk."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Options as Options, Summary as Summary, index as index
    from eyespot.gallery.view import Gallery as Gallery, View as View
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(__name__, {"indexing": "Options Summary index", "view": "Gallery View"})
