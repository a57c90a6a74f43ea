"""The small folders of photos of the gallery's tests."""

from tests.gallery.conftest import photos

__all__ = ["photos"]
