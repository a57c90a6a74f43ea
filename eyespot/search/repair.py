"""Repair of what lies beside a gallery's vectors: local descriptors are made again as they were.

`eyespot.gallery.indexing.index` repairs vectors, facts, codes and the ledger; this comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.describing import Describing, describe_again
from eyespot.gallery.integrity import Fault
from eyespot.gallery.local import LocalNote, read_local_note
from eyespot.types import EyespotError, Progress


def repair_beside(gallery: Path, damaged: Sequence[Fault], progress: Progress) -> list[str]:
    """Make the local descriptors again that have a damaged file; notes on each, and on indexes that are damaged."""
    notes: list[str] = []
    places = [(fault.shard, PurePosixPath(fault.file).parts) for fault in damaged]
    for stem in sorted({parts[1] for _, parts in places if parts[0] == "local"}):
        shards = sorted({gallery / "shards" / shard for shard, parts in places if parts[:2] == ("local", stem)})
        notes += _describe_again(gallery, shards, stem, progress)
    for space, name in sorted({parts[1:3] for _, parts in places if parts[0] == "indexes"}):
        notes.append(f"the index {name} of {space} is damaged; make it again with: eyespot tune")
    return notes


def _describe_again(gallery: Path, shards: Sequence[Path], stem: str, progress: Progress) -> Iterator[str]:
    """Describe the pictures of these shards again; notes on those that are sound now and those that stay damaged."""
    made = 0
    try:
        note = _note_of(gallery, stem)
        extractor = rooms.load("descriptors", note.extractor)
        if LocalNote.of(extractor, note.count).stem != stem:
            raise EyespotError(f"{note.extractor} has other settings now; make new ones with: eyespot describe")
    except EyespotError as error:
        yield f"local descriptors {stem} stay damaged: {error}"
        return
    for shard in shards:
        try:
            describe_again(gallery, extractor, shard, Describing(note.count, progress=progress))
            made += 1
        except EyespotError as error:
            yield f"local descriptors {stem} of shard {shard.name} stay damaged: {error}"
    if made:
        yield f"local descriptors {stem} of {made} shards were damaged; they are made again"


def _note_of(gallery: Path, stem: str) -> LocalNote:
    """The note of a set, from any shard."""
    for shard in disk.shard_paths(gallery):
        try:
            note = read_local_note(shard, stem)
        except EyespotError:
            continue
        if note is not None and note.stem == stem:
            return note
    raise EyespotError("no note says how they were made; make new ones with: eyespot describe")
