"""int8 codes next to a gallery's vectors: what keeps exact search fast without anything of the gallery in memory.

A shard's codes are made once, from the vectors as they lie there, and mapped by every search. Where the vectors change,
their codes go; a search without up-to-date codes is as exact, and slower.
"""

from __future__ import annotations

from pathlib import Path

from eyespot.gallery.view import Gallery, View
from eyespot.kernels.codes import current_codes, write_codes
from eyespot.types import EyespotError, Progress


def write_spaces(gallery: Path, every: bool, progress: Progress) -> list[str]:
    """Codes for the spaces that have some already, or for every one; notes on those that get none for now."""
    notes, opened = [], Gallery(gallery)
    for stem, space in opened.header.spaces.items():
        if every or any(gallery.glob(f"shards/*/{stem}.match.npy")):
            try:
                write_missing(opened.view(stem), progress)
            except EyespotError as error:  # the source of imported vectors is away, say
                notes.append(f"{space.encoder} has no codes for now: {error}")
    return notes


def write_missing(view: View, progress: Progress) -> int:
    """Make the codes that shards lack or that are out of date, shard by shard; how many rows got some.

    Memory does not grow with a shard. Raises OSError if the disk is full.
    """
    rows = 0
    for done, (shard, block) in enumerate(zip(view.shards, view.blocks, strict=True)):
        progress(f"coding {view.space.encoder}", done, len(view.shards))
        if current_codes(shard / view.stem, block) is None:
            write_codes(block, shard / view.stem)
            rows += len(block)
    progress(f"coding {view.space.encoder}", len(view.shards), len(view.shards))
    return rows
