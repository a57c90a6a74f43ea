"""What earlier runs left and the collection no longer names: pictures of another draw or licence, old tables."""

from __future__ import annotations

import hashlib
import os
import shutil
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

from eyespot.curate.inat.naming import SPLIT


def remove_leftovers(out: Path, named: Iterable[str]) -> int:
    """Remove pictures below `train/` that are not among these, and folders left empty; how many pictures went.

    Only what a run puts there goes, `SPECIES/PHOTO.jpg`; links are not followed.
    """
    place = out / SPLIT
    there = sorted(place.iterdir()) if place.is_dir() else []
    folders = [one for one in there if one.is_dir() and not one.is_symlink()]
    if not folders:
        return 0
    marks = array("Q", sorted(array("Q", map(_mark, named))))  # eight bytes each: there may be millions
    removed = 0
    for species in folders:
        for name in sorted(os.listdir(species)):
            place = species / name
            # A picture, or what a kill left of one that was being written
            if (
                name.endswith((".jpg", ".jpg.part"))
                and not place.is_symlink()
                and not _holds(marks, _mark(f"{SPLIT}/{species.name}/{name}"))
            ):
                place.unlink()
                removed += name.endswith(".jpg")
        if not any(species.iterdir()):
            species.rmdir()
    return removed


def remove_old_tables(work: Path) -> None:
    """Remove the tables of earlier versions, `WORK/02-filtered`; steps lie in another place and form now."""
    for note in work.glob("[0-9][0-9]-*/stage.json"):
        shutil.rmtree(note.parent)
    (work / "looked.parquet").unlink(missing_ok=True)


def _mark(file: str) -> int:
    return int.from_bytes(hashlib.blake2b(file.encode("utf-8", "surrogateescape"), digest_size=8).digest())


def _holds(marks: array[int], mark: int) -> bool:
    at = bisect_left(marks, mark)
    return at < len(marks) and marks[at] == mark
