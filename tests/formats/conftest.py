"""The small folders of photos of the gallery's tests."""

from tests.gallery.conftest import photos, starter

__all__ = ["photos", "starter"]
