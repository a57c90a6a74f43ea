"""What tests read from a gallery, and small damage to its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.gallery.view import Gallery, View


def opened(gallery: Path, encoder: str | None = None) -> View:
    """The view that a search without further words would have."""
    found = Gallery(gallery)
    return found.view(found.stem(encoder))


def facts_of(gallery: Path) -> list[dict[str, Any]]:
    """The facts of every row, whether it can be found or not."""
    view = opened(gallery)
    return view.facts(range(int(view.starts[-1])))


def facts_by_name(gallery: Path) -> dict[str, dict[str, Any]]:
    """The facts of every row by the file name of its picture."""
    return {Path(fact["path"]).name: fact for fact in facts_of(gallery)}


def flip(place: Path, at: int = -9) -> None:
    """Change one bit of a file."""
    data = bytearray(place.read_bytes())
    data[at] ^= 1
    place.write_bytes(data)


def contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """Every file below a folder, bit for bit."""
    places = sorted(place for place in folder.rglob(pattern) if place.is_file())
    return {place.relative_to(folder).as_posix(): place.read_bytes() for place in places}
