"""Removes what earlier runs left: pictures of another draw or licence, old tables."""

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
    """Remove pictures below `train/` that are not among these, and folders left empty; the number of pictures.

    Only files that a run puts there are removed, `SPECIES/PHOTO.jpg`; links are not followed.
    """
    train = out / SPLIT
    there = sorted(train.iterdir()) if train.is_dir() else []
    folders = [folder for folder in there if folder.is_dir() and not folder.is_symlink()]
    if not folders:
        return 0
    marks = array("Q", sorted(array("Q", map(_mark, named))))  # eight bytes each: there may be millions
    removed = 0
    for species in folders:
        for name in sorted(os.listdir(species)):
            picture, mark = species / name, _mark(f"{SPLIT}/{species.name}/{name}")
            place = bisect_left(marks, mark)
            is_named = place < len(marks) and marks[place] == mark
            # A picture, or what a kill left of one that was being written
            if name.endswith((".jpg", ".jpg.part")) and not picture.is_symlink() and not is_named:
                picture.unlink()
                removed += name.endswith(".jpg")
        if not any(species.iterdir()):
            species.rmdir()
    return removed


def remove_old_tables(work: Path) -> None:
    """Remove the tables of earlier versions, such as `WORK/02-filtered`."""
    for note in work.glob("[0-9][0-9]-*/stage.json"):
        shutil.rmtree(note.parent)
    (work / "looked.parquet").unlink(missing_ok=True)


def _mark(file: str) -> int:
    return int.from_bytes(hashlib.blake2b(file.encode("utf-8", "surrogateescape"), digest_size=8).digest())
