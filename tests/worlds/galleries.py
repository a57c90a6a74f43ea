"""What tests read from a gallery, and small damage to its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.items_table import read_items
from eyespot.gallery.view import Gallery, View
from tests.worlds import draw


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
    data = bytearray(place.read_bytes())
    data[at] ^= 1
    place.write_bytes(data)


def contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    places = sorted(place for place in folder.rglob(pattern) if place.is_file())
    return {place.relative_to(folder).as_posix(): place.read_bytes() for place in places}


def shard_contents(gallery: Path) -> list[tuple[list[dict[str, Any]], bytes]]:
    stem = Gallery(gallery).stem()
    return [(read_items(shard).to_pylist(), map_vectors(shard, stem).tobytes()) for shard in shard_paths(gallery)]


def two_roots(folder: Path, count: int) -> Path:
    """Two roots with a twin, an empty file and a torn one; the second has label columns that the first lacks."""
    for seed in range(count):
        draw(folder / f"root{seed % 2}" / f"{seed % 4}" / f"{seed:04d}.jpg", seed)
    (folder / "root1" / "twin.jpg").write_bytes((folder / "root0" / "0" / "0000.jpg").read_bytes())
    (folder / "root1" / "zero.jpg").write_bytes(b"")
    (folder / "root1" / "torn.jpg").write_bytes((folder / "root0" / "0" / "0000.jpg").read_bytes()[:400])
    rows = "".join(f"{seed % 4}/{seed:04d}.jpg,{seed}\n" for seed in range(1, count, 6))
    (folder / "root1" / "metadata.csv").write_text("file_name,number\n" + rows)
    return folder
