"""Segments: shards merged into one folder of the same form, so that a gallery of millions has few files.

A segment is `shards/00000-00127`: the rows of the shards 0 to 127 in their order, with those of pictures that are gone,
so that no row gets another number. Its `members.json` says which rows came from which shard, for what was made of the
shards before: links between copies, approximate indexes, the map.

It appears by one rename, from which on every reader leaves out the shards within its span.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.files import whole
from eyespot.gallery.groups.near_duplicates import HASHES
from eyespot.gallery.row_store import write_row_store
from eyespot.kernels.codes import code_files, has_codes, write_codes
from eyespot.parallel import ordered_map
from eyespot.storage import sqlite
from eyespot.storage.arrays import append, begin
from eyespot.storage.atomic import new_folder, trouble
from eyespot.storage.digests import damaged_files, file_blake2b, new_digested, rewriting, sound_digests, write_digests
from eyespot.storage.locks import locked
from eyespot.storage.systems import usable_cores
from eyespot.types import EyespotError, Progress, UsageError, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.gallery.picture_index import PictureIndex

MEMBERS, LINKS = "members.json", "links.i64"
MANY = 64  # neighbouring shards that an index run merges by itself
ROWS = 1 << 20  # of a segment; it has fewer where the next shard would not fit
GRACE = 10.0  # seconds for which a search that began before may still read the shards that were merged
_PIECE = 1 << 17  # rows of facts that are written at once
_BYTES = 1 << 24  # of vectors that are copied at once


@dataclass(frozen=True)
class Member:
    """A shard that was merged: its number and rows, and the digest of its vectors in each space by file name."""

    number: int
    rows: int
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What its folder was called."""
        return f"{self.number:05d}"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a run of `compact` did: the segments that it made, the shards and rows in them, and notes on the rest."""

    segments: list[str]
    shards: int
    rows: int
    notes: list[str]


def members_of(shard: Path) -> list[Member]:
    """The shards in a segment, in order; none of a plain shard. `EyespotError` if the list is damaged."""
    first, last = disk.span_of(shard)
    if first == last:
        return []
    with whole(shard / MEMBERS, lambda: disk.way_out(shard)) as place:
        members = [Member(**one) for one in json.loads(place.read_text(encoding="utf-8"))]
        if not members or (members[0].number, members[-1].number) != (first, last):
            raise ValueError("it names other shards")
        return members


def current_numbers(shards: Sequence[Path], numbers: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Numbers of rows, each `shard · rows + row`, as they are now that some of the shards are in segments."""
    moved: dict[int, int] = {}
    for shard in shards:
        members = members_of(shard)
        starts = accumulate((member.rows for member in members), initial=0)
        moved |= {member.number: disk.number_of(shard) * rows + at for member, at in zip(members, starts, strict=False)}
    if not moved:
        return numbers
    old = np.array(sorted(moved), np.int64)
    new = np.array([moved[number] for number in sorted(moved)], np.int64)
    at = np.minimum(np.searchsorted(old, numbers // rows), len(old) - 1)
    found: NDArray[np.int64] = np.where(old[at] == numbers // rows, new[at] + numbers % rows, numbers)
    return found


# -- what a killed run left ---------------------------------------------------------------------------------


def settle(gallery: Path, ledger: PictureIndex) -> None:
    """Finish what a run that was killed began: the index's rows of merged shards, their folders, half a segment."""
    for segment in disk.shard_paths(gallery):
        if "-" in segment.name:
            _move_rows(ledger, segment)
    for folder in (*disk.merged_paths(gallery), *gallery.glob("shards/.*-*.part")):
        shutil.rmtree(folder, ignore_errors=True)


def _move_rows(ledger: PictureIndex, segment: Path) -> None:
    """Let the index find the rows of the shards of a segment there; nothing happens where it does already."""
    first, last = disk.span_of(segment)
    if ledger.has_shards(first + 1, last):
        ledger.move_rows([(member.number, member.rows) for member in members_of(segment)], last)


def compact(gallery: Path, most: int = ROWS, progress: Progress = no_progress, grace: float = GRACE) -> Merged:
    """Merge the shards of a gallery into segments of at most so many rows.

    Raises `UsageError` if there is no gallery or it is a copy of a published one, `EyespotError` while another eyespot
    writes to it, and where the disk is too small or full; then the gallery is as it was.
    """
    from eyespot.gallery.picture_index import PictureIndex
    from eyespot.gallery.word_table import complete
    from eyespot.storage.copies import INDEX

    disk.read_header(gallery)
    if (gallery / disk.FETCHED).exists():
        raise UsageError(f"{gallery} is a copy of a published gallery; compact that one and publish it again")
    try:
        with locked(gallery), sqlite.whole(gallery / INDEX), closing(PictureIndex(gallery)) as ledger:
            settle(gallery, ledger)
            merged = merge(gallery, ledger, mergeable(gallery, ledger, most), progress, grace)
            complete(gallery, progress)
            return merged
    except (OSError, sqlite3.OperationalError) as error:
        raise EyespotError(f"cannot write to {gallery} {trouble(error, elsewhere='compact a copy of it')}") from error


def planned(gallery: Path, most: int = ROWS) -> list[list[Path]]:
    """The groups of shards that `compact` would merge; nothing is written."""
    from eyespot.gallery.reading import reading

    disk.read_header(gallery)
    with reading(gallery) as ledger:
        return mergeable(gallery, ledger, most)


# -- what can be merged -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shard:
    path: Path
    rows: int
    kind: tuple[Any, ...] | None  # what shards that are merged have in common; None for one that is left alone
    columns: dict[str, tuple[str, str]]  # names and types, by names without upper case


def mergeable(gallery: Path, ledger: PictureIndex, most: int = ROWS) -> list[list[Path]]:
    """Neighbouring shards that fit into one segment of at most so many rows, in order; each list has two or more."""
    known, counts = ledger.shard_rows(), ledger.imported_rows()
    for number, place in disk.places_of(gallery, counts).items():
        known[disk.number_of(place)] = known.get(disk.number_of(place), 0) + counts[number]
    there = disk.shard_paths(gallery)
    # The shards that each approximate index was built of: with others in one segment it would be of no use
    indexes = []
    for place in sorted(gallery.glob("indexes/*/[!.]*/settings.json")):
        with suppress(OSError, ValueError, LookupError, TypeError):
            indexes.append({str(shard["shard"]) for shard in json.loads(place.read_bytes())["shards"]})
    shards = [_shard_at(shard, known, indexes) for shard in there]
    # A shard that is planned or lost is still to be written, and a segment around its number would hide it.
    absent = {*disk.places_of(gallery, ledger.known_shards()).values()}.difference(there)
    shards = sorted(
        [*shards, *(_Shard(place, 0, None, {}) for place in absent)], key=lambda one: disk.number_of(one.path)
    )
    groups: list[list[Path]] = []
    for kind, run in groupby(shards, key=lambda shard: shard.kind):
        rows, columns = most, dict[str, tuple[str, str]]()
        for shard in () if kind is None else run:
            # Too many rows, or a column in another spelling or of another type
            differs = any(columns.get(name, column) != column for name, column in shard.columns.items())
            if differs or rows + shard.rows > most:
                groups.append([])
                rows, columns = 0, {}
            groups[-1].append(shard.path)
            rows += shard.rows
            columns |= shard.columns
    return [group for group in groups if len(group) > 1]


def _shard_at(shard: Path, known: dict[int, int], indexes: Sequence[set[str]]) -> _Shard:
    """Vectors that were imported in place lie elsewhere; local features stay beside the shard they were made of."""
    import pyarrow.parquet as pq

    number = disk.number_of(shard)
    rows, local = known.get(number, 0), shard / "local"
    if not rows or (local.is_dir() and any(local.iterdir())):
        return _Shard(shard, rows, None, {})
    try:
        notes = {disk.stem_of(note.space): note for note in disk.read_notes(shard)}
        kinds = [(stem, note.dtype or disk.dtype_of(shard, stem), note.source or "") for stem, note in notes.items()]
        with whole(shard / disk.ITEMS, lambda: disk.way_out(shard)) as place:
            facts = pq.read_metadata(place)
            columns = {one.name.casefold(): (one.name, str(one.type)) for one in facts.schema.to_arrow_schema()}
    except EyespotError:  # a repair comes first
        return _Shard(shard, rows, None, {})
    if facts.num_rows != rows or any(source for *_, source in kinds):
        return _Shard(shard, rows, None, {})
    covered = tuple(f"{number:05d}" in shards for shards in indexes)
    return _Shard(shard, rows, (*sorted(kinds), (shard / HASHES).exists(), covered), columns)


def merge_many(gallery: Path, ledger: PictureIndex, progress: Progress) -> list[str]:
    """Merge where an index run finds many small shards; notes, also where there is no room, which ends no run."""
    many = [group for group in mergeable(gallery, ledger) if len(group) >= MANY]
    try:
        return merge(gallery, ledger, many, progress, grace=math.inf).notes
    except (EyespotError, OSError) as error:
        return [f"shards were not merged into segments: {error}"]


# -- merging ------------------------------------------------------------------------------------------------


def merge(
    gallery: Path,
    ledger: PictureIndex,
    groups: Sequence[Sequence[Path]],
    progress: Progress = no_progress,
    grace: float = GRACE,
) -> Merged:
    """Make a segment of each group of shards; the caller holds the gallery's lock.

    Merged shards are removed `grace` seconds after their segment has appeared; infinity leaves that to a later run.
    A group with a damaged file is left alone and named in the notes. Raises `EyespotError` where the disk has no room
    for the largest group, OSError if it is full all the same.
    """
    made = Merged([], 0, 0, [])
    _refuse_full(gallery, groups, len(groups) if grace == math.inf else 2)
    total, done, old = sum(map(len, groups)), 0, list[tuple[float, Sequence[Path]]]()
    for group in groups:
        progress("merging shards", done, total)
        done += len(group)
        looks = ordered_map(damaged_files, group, usable_cores(), 0)
        if damaged := next((shard for shard, found in zip(group, looks, strict=False) if found), None):
            made.notes.append(f"{damaged} has a damaged file, so its neighbours stay apart; {disk.way_out(damaged)}")
            continue
        segment = _segment(gallery, group)
        _move_rows(ledger, segment)
        made.segments.append(segment.name)
        made = replace(made, shards=made.shards + len(group), rows=made.rows + items_table.count_items(segment))
        old.append((time.monotonic() + grace, group))
        _remove_due(old)
    progress("merging shards", total, total)
    while old and grace < math.inf:
        progress("waiting for searches that read the old shards", 0, 0)
        time.sleep(max(0.0, old[0][0] - time.monotonic()))
        _remove_due(old)
    return made


def _remove_due(old: list[tuple[float, Sequence[Path]]]) -> None:
    """Remove the shards whose time has come, and take them off the list."""
    while old and old[0][0] <= time.monotonic():
        for folder in old.pop(0)[1]:
            shutil.rmtree(folder, ignore_errors=True)


def _refuse_full(gallery: Path, groups: Sequence[Sequence[Path]], together: int) -> None:
    """`EyespotError` without room for so many segments beside the shards that they are made of."""
    sizes = [sum(file.stat().st_size for shard in group for file in shard.iterdir()) for group in groups]
    needed, free = sum(sorted(sizes)[-together:]) if sizes else 0, shutil.disk_usage(gallery).free
    if needed > free:
        raise EyespotError(
            f"merging takes {needed / 1e6:,.1f} MB for a while, and the disk of {gallery} has {free / 1e6:,.1f} MB;"
            " make room, or make smaller segments with: eyespot compact --rows"
        )


def _segment(gallery: Path, shards: Sequence[Path]) -> Path:
    from eyespot.gallery.word_table import WordMaker  # with all that reads texts, which a search does not

    first, last = disk.span_of(shards[0])[0], disk.span_of(shards[-1])[1]
    place = gallery / "shards" / f"{first:05d}-{last:05d}"
    sizes = [items_table.count_items(shard) for shard in shards]
    with new_folder(place) as folder:
        _merge_facts(shards, folder)
        write_row_store(folder)
        with closing(WordMaker(gallery)) as maker:
            maker.write(folder)
        for note in disk.read_notes(shards[0]):
            _merge_vectors(shards, sizes, disk.stem_of(note.space), folder)
        # Links that are not there or older than the facts: the next index run makes them for the segment
        times = [[written_at(shard / name) for name in (disk.ITEMS, LINKS)] for shard in shards]
        names = [HASHES, LINKS] if all(0 < items <= links for items, links in times) else [HASHES]
        for name in (name for name in names if (shards[0] / name).exists()):
            with new_digested(folder / name) as file:
                for shard in shards:
                    file.write((shard / name).read_bytes())
            _take_time(folder / name, shards)
        members = []
        for shard, rows in zip(shards, sizes, strict=True):
            stems = {f"{disk.stem_of(note.space)}.npy" for note in disk.read_notes(shard)}
            vectors = {name: digest for name, digest in sound_digests(shard).items() if name in stems}
            members += members_of(shard) or [Member(disk.number_of(shard), rows, vectors)]
        with new_digested(folder / MEMBERS) as file:
            file.write(json.dumps([asdict(member) for member in members]).encode())
        write_digests(folder, sound_digests(folder))  # newer than the times that were set, so a glance finds no change
        disk.write_header(gallery, disk.read_or_rebuild_header(gallery))  # from now on with the format of segments
    return place


def _merge_facts(shards: Sequence[Path], folder: Path) -> None:
    """The tables of facts one after the other, with all columns that one of them has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(shard / disk.ITEMS) for shard in shards]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    with (
        new_digested(folder / disk.ITEMS) as file,
        pq.ParquetWriter(file.io, schema, write_page_checksum=True) as writer,
    ):
        waiting: list[pa.Table] = []
        for shard in shards:  # some thousand rows at a time, lest small shards leave many small row groups
            table = items_table.read_items(shard)
            columns = [
                table[one.name].cast(one.type) if one.name in table.column_names else pa.nulls(len(table), one.type)
                for one in schema
            ]
            waiting.append(pa.table(columns, schema=schema))
            if sum(map(len, waiting)) >= _PIECE or shard == shards[-1]:
                writer.write_table(items_table.without_nan(pa.concat_tables(waiting)), row_group_size=disk.LARGE)
                waiting = []
    _take_time(folder / disk.ITEMS, shards)


def _merge_vectors(shards: Sequence[Path], sizes: Sequence[int], stem: str, folder: Path) -> None:
    """The vectors of a space one after the other, then their note, and codes where a shard has some."""
    blocks = [disk.map_vectors(shard, stem) for shard in shards]
    notes = [disk.read_note(shard, stem) for shard in shards]
    starts = accumulate(sizes, initial=0)
    missing = [start + row for note, start in zip(notes, starts, strict=False) if note for row in note.missing]
    name, like = f"{stem}.npy", blocks[0]
    with new_digested(folder / name) as file:
        begin(file, (sum(sizes), like.shape[1]), like.dtype)
        step = max(1, _BYTES // (like.shape[1] * like.itemsize))
        for block in blocks:
            for at in range(0, len(block), step):
                append(file, block[at : at + step])
    _take_time(folder / name, shards)
    space = next(note for note in notes if note)
    fresh = disk.SpaceNote(space.space, missing, space.fingerprints, None, f"blake2b:{file.hex}", like.dtype.name)
    disk.write_note(folder, fresh)
    if any(has_codes(shard / stem) for shard in shards):
        with rewriting(folder, code_files(stem)) as digests:
            write_codes(disk.map_vectors(folder, stem), folder / stem)
            digests |= {name: file_blake2b(folder / name) for name in code_files(stem)}


def _take_time(place: Path, shards: Sequence[Path]) -> None:
    """Give a file the time of the newest that it was made of: what was made of those does not count as outdated."""
    newest = max(written_at(shard / place.name) for shard in shards)
    os.utime(place, ns=(newest, newest))


def written_at(place: Path) -> int:
    """When a file was written; 0 if it is not there."""
    return place.stat().st_mtime_ns if place.exists() else 0
