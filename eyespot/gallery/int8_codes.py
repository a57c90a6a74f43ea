"""int8 codes next to a gallery's vectors: what keeps exact search fast without anything of the gallery in memory.

A shard's codes are made once, from the vectors as they lie there, and mapped by every search. Where the vectors change,
their codes go; a search without up-to-date codes is as exact, and slower.
"""

from __future__ import annotations

from pathlib import Path

from eyespot.gallery import disk
from eyespot.gallery.view import Gallery, View
from eyespot.kernels.codes import code_files, current_codes, write_codes
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, file_blake2b, rewriting, sound_digests
from eyespot.types import EyespotError, Progress


def write_spaces(gallery: Path, every: bool, progress: Progress, look: LookAtFiles) -> list[str]:
    """Codes for the spaces that have some already, or for every one; notes on those that get none for now."""
    opened = Gallery(gallery)
    digests = {name for shard in disk.shard_paths(gallery) for name in sound_digests(shard)}
    notes = []
    for stem, space in opened.header.spaces.items():
        if every or not digests.isdisjoint(code_files(stem)) or any(gallery.glob(f"shards/*/{stem}.match.npy")):
            try:
                write_missing(opened.view(stem), progress, look)
            except EyespotError as error:  # the source of imported vectors is away, say
                notes.append(f"{space.encoder} has no codes for now: {error}")
    return notes


def write_missing(view: View, progress: Progress, look: LookAtFiles = damaged_at_a_glance) -> None:
    """Make the codes that shards lack, that are out of date or look damaged, shard by shard.

    Memory does not grow with a shard. Raises OSError if the disk is full.
    """
    names = code_files(view.stem)
    for done, (shard, block) in enumerate(zip(view.shards, view.blocks, strict=True)):
        progress(f"coding {view.space.encoder}", done, len(view.shards))
        if look(shard, names) or current_codes(shard / view.stem, block) is None:
            with rewriting(shard, names) as digests:
                write_codes(block, shard / view.stem)
                digests |= {name: file_blake2b(shard / name) for name in names}
    progress(f"coding {view.space.encoder}", len(view.shards), len(view.shards))
