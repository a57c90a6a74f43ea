"""Repair of what lies beside a gallery's vectors: local descriptors and approximate indexes, each made again as it was.

`eyespot.gallery.indexing.index` repairs vectors, facts, codes and the ledger; this comes after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.describing import Describing, describe
from eyespot.gallery.integrity import Fault
from eyespot.gallery.local import LocalNote, read_local_note
from eyespot.gallery.view import Gallery
from eyespot.search.index_choice import rebuild_index
from eyespot.types import EyespotError, Progress

_COUNTS = range(1, 10_001)  # descriptors a picture that are tried for a set whose note is lost


def repair_beside(gallery: Path, damaged: Sequence[Fault], progress: Progress) -> list[str]:
    """Make the local descriptors and indexes again that have a damaged file; notes on each, also on what stays lost."""
    notes = []
    places = [(fault.shard, PurePosixPath(fault.file).parts) for fault in damaged]
    for stem in sorted({parts[1] for _, parts in places if parts[0] == "local"}):
        shards = sorted(
            {disk.shard_path(gallery, int(shard)) for shard, parts in places if parts[:2] == ("local", stem)}
        )
        try:
            _describe_again(gallery, shards, stem, progress)
            notes.append(f"local descriptors {stem} of {len(shards)} shards were damaged; they are made again")
        except EyespotError as error:
            notes.append(f"local descriptors {stem} stay damaged: {error}")
    for space, name in sorted({parts[1:3] for _, parts in places if parts[0] == "indexes"}):
        progress(f"building {name}", 0, 0)
        try:
            rebuild_index(Gallery(gallery).view(space), name)
            notes.append(f"the index {name} of {space} was damaged; it is built again")
        except EyespotError as error:
            notes.append(f"the index {name} of {space} stays damaged: {error}")
    return notes


def _describe_again(gallery: Path, shards: Sequence[Path], stem: str, progress: Progress) -> None:
    note = _note_of(gallery, stem)
    extractor = rooms.load("descriptors", note.extractor)
    if LocalNote.of(extractor, note.count).stem != stem:
        raise EyespotError(f"{note.extractor} has other settings now; make new ones with: eyespot describe")
    for shard in shards:
        shutil.rmtree(shard / "local" / stem)
    describe(gallery, extractor, Describing(note.count, progress=progress))


def _note_of(gallery: Path, stem: str) -> LocalNote:
    """The note of a set, from any shard; else what its name, which is a digest of it, fits."""
    for shard in disk.shard_paths(gallery):
        try:
            note = read_local_note(shard, stem)
        except EyespotError:
            continue
        if note is not None and note.stem == stem:
            return note
    name = stem.rpartition("-")[0]
    settings = dict(rooms.load("descriptors", name).settings)
    notes = (LocalNote(name, settings, count) for count in _COUNTS)
    if (fitting := next((note for note in notes if note.stem == stem), None)) is None:
        raise EyespotError("no note says how they were made; make new ones with: eyespot describe")
    return fitting
