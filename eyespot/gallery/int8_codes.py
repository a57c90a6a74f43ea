"""int8 codes next to a gallery's vectors: what keeps exact search fast without anything of the gallery in memory.

A shard's codes are made once, from the vectors as they lie there, and mapped by every search. Where the vectors change,
their codes go; a search without up-to-date codes is as exact, and slower.
"""

from __future__ import annotations

from eyespot.gallery.view import View
from eyespot.kernels.codes import current_codes, has_codes, write_codes
from eyespot.types import Progress


def is_coded(view: View) -> bool:
    """Whether any shard of a space has codes: then those that come later shall have them too."""
    return any(has_codes(shard / view.stem) for shard in view.shards)


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
