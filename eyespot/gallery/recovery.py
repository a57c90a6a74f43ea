"""What is made again for galleries whose `index.sqlite` or `ledger.sqlite` was lost or damaged, each by itself.

The index comes from the shards, the ledger from its copies and what can be read of it. The facts on disk say which
pictures there are and where they lay; sizes and times of the files are not trusted, so the next look reads every file
once more, but embeds none that is known.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from shlex import quote

from eyespot.gallery import disk, items_table, texts
from eyespot.gallery.files import Damaged
from eyespot.gallery.index_tables import OPTIONAL, split
from eyespot.gallery.integrity import index_folders, local_folders
from eyespot.gallery.picture_index import RETRY, PictureIndex
from eyespot.gallery.segments import LINKS, MEMBERS, Member, members_of
from eyespot.photos.videos.addresses import frame_of, place_of_frame
from eyespot.storage import copies, sqlite
from eyespot.storage.atomic import new_file
from eyespot.storage.copies import INDEX, LEDGER
from eyespot.storage.digests import DIGESTS, LookAtFiles, damaged_files, new_digested, rewriting
from eyespot.types import EyespotError

_MEASURED = ("width", "height", "taken", "latitude", "longitude", "camera", *OPTIONAL)


def ready_ledger(gallery: Path, read_all: bool) -> list[str]:
    """An empty ledger and no index in place of those that are gone or, if all is read, damaged; notes.

    Then local descriptors and approximate indexes that are damaged go, too.
    """
    ledger, index = gallery / LEDGER, gallery / INDEX
    notes = [f"another program wrote to {ledger}, which is sound and stays"] if copies.is_foreign(ledger) else []
    notes += _rebuild(ledger) if _is_lost(ledger, read_all) else copies.repair_copies(ledger) if read_all else []
    if _is_lost(index, read_all):
        _clear(index)
        notes.append(_note(index))
    return notes + (drop_damaged_beside(gallery) if read_all else [])


def _is_lost(place: Path, read_all: bool) -> bool:
    if not place.exists():
        return bool(copies.why_changed(place))
    try:
        if read_all:
            sqlite.check(place)
    except sqlite.DamagedLedger:
        return True
    return False


def _note(place: Path) -> str:
    return f"{place} was missing or damaged; it is made again"


def _clear(place: Path) -> None:
    for name in (place.name, f"{place.name}-wal", f"{place.name}-shm"):
        place.with_name(name).unlink(missing_ok=True)
    copies.open_digest(place)


def _rebuild(place: Path) -> list[str]:
    """Put an empty ledger in place of one that is damaged or gone, and save what only the old one holds; notes.

    Each store takes its own tables from their copies when it opens it.
    """
    notes = [_note(place)]
    if place.exists():
        # A copy of it and of its log, beside those of earlier repairs: nothing of it is given up
        endings = chain([""], (f"-{number}" for number in count(2)))
        names = (f"{place.name}.damaged{ending}" for ending in endings)
        aside = next(path for name in names if not (path := place.with_name(name)).exists())
        for ending in ("", "-wal"):
            if (source := place.with_name(f"{place.name}{ending}")).exists():
                with new_file(aside.with_name(f"{aside.name}{ending}")) as file, source.open("rb") as data:
                    shutil.copyfileobj(data, file)
        if copies.rescue(place):
            for name in (aside.name, f"{aside.name}-wal"):
                place.with_name(name).unlink(missing_ok=True)
        else:
            notes.append(
                "what could be read of it is there again; what was recorded since its last copy, or by another"
                f" program, may be missing: the old file is {aside}"
            )
    _clear(place)
    place.touch()
    return notes


def drop_damaged_digests(gallery: Path) -> None:
    """Of shards and the gallery: their files are read instead.

    Of codes, which nothing else vouches for, one part goes, so that all are made again.
    """
    for folder in (gallery, *disk.shard_paths(gallery)):
        if DIGESTS in damaged_files(folder, []):
            (folder / DIGESTS).unlink()
            for place in folder.glob("*.codes.npy"):
                place.unlink()


def drop_damaged_beside(gallery: Path) -> list[str]:
    """Remove local descriptors and approximate indexes that have a damaged file; notes with what makes them again."""
    notes, here = [], f"-g {quote(str(gallery))}"
    makers = {place: f"eyespot describe {here}" for place in local_folders(gallery)}
    makers |= {place: f"eyespot tune -e {place.parent.name} {here}" for place in index_folders(gallery)}
    for folder, line in makers.items():
        if (damaged := damaged_files(folder)) and DIGESTS not in damaged:
            shutil.rmtree(folder)
            notes.append(f"{folder} was removed, for {min(damaged)} was damaged; make it again with: {line}")
    return notes


def repair_members(gallery: Path, record: PictureIndex, look: LookAtFiles) -> list[str]:
    """Write the lists of members of segments again that are damaged; notes on them.

    The ledger knows how many rows each shard had. Where it does not, all count as those of the first one, and links of
    copies, which name rows by their old shards, are made again.
    """
    notes, shards = [], disk.shard_paths(gallery)
    for at, segment in enumerate(shards):
        first, last = disk.span_of(segment)
        members: list[Member] = []
        with suppress(EyespotError):
            members = members_of(segment)
        if first == last or (members and not look(segment, [MEMBERS])):
            continue
        imported = {number: rows for number, rows in record.imported_rows().items() if first <= number <= last}
        counts = imported or dict(enumerate(record.span_rows(first), first))
        if {first, last} != {min(counts, default=-1), max(counts, default=-1)}:
            counts = {first: sum(counts.values()), last: 0}
            for shard in shards[at:]:
                with rewriting(shard, [LINKS]):
                    (shard / LINKS).unlink(missing_ok=True)
        with new_digested(segment / MEMBERS) as file:
            file.write(json.dumps([asdict(Member(number, rows)) for number, rows in counts.items()]).encode())
        notes.append(f"{segment} had lost the list of its shards; it is written again")
    return notes


def recover(gallery: Path, record: PictureIndex) -> bool:
    """Take shards that the index does not know into it; whether there were any.

    Raises `EyespotError` if they hold pictures that the index knows elsewhere: then there are two truths.
    """
    known = record.known_shards()
    lost = [shard for shard in disk.shard_paths(gallery) if disk.number_of(shard) not in known]
    if not lost:
        return False
    with record.transaction():
        record.sql.execute("DELETE FROM tallies")  # which say nothing of what is taken in now
        for number, root in disk.read_or_rebuild_header(gallery).roots.items():
            stored = disk.stored_root(gallery, root)
            record.sql.execute("INSERT OR IGNORE INTO roots VALUES (?, ?, ?)", (number, *stored))
        for shard in lost:
            _take_in(record, shard)
    return True


def _take_in(record: PictureIndex, shard: Path) -> None:
    try:
        rows = items_table.read_items(shard).to_pylist()
    except Damaged as error:
        raise EyespotError(
            f"the index does not know {shard}, and its facts are damaged ({error.reason}); move that folder away and "
            "run again, which embeds its pictures again"
        ) from None
    notes = disk.read_notes(shard, sound=not disk.is_imported(shard))
    sources = [note for note in notes if note.source]
    if sources:
        stem, form = disk.stem_of(sources[0].space), str(rows[0]["id"]).partition(":")[0] if rows else ""
        imported = (disk.number_of(shard), rows[0]["roots"][0] if rows else 0, len(rows), form, stem, sources[0].source)
        record.sql.execute("INSERT INTO imported VALUES (?, ?, ?, ?, ?, ?)", imported)
        return
    if any(record.is_known(row["id"]) for row in rows):
        raise EyespotError(
            f"{shard} holds pictures that the index knows elsewhere; move that folder away and run again"
        )
    measured = {row["id"]: {name: row[name] for name in _MEASURED if row.get(name) is not None} for row in rows}
    for facts in measured.values():
        facts |= {"taken": facts["taken"].isoformat()} if "taken" in facts else {}
    numbers = record.add_pictures(disk.number_of(shard), measured)
    for row in rows:
        number = numbers[row["id"]]
        texts.take_back(record, number, row)
        for root, path in zip(row["roots"], row["paths"], strict=True):
            frame = frame_of(path)
            place = -1 if frame is None else place_of_frame(frame.ms)
            folder, name = split(path)
            values = (record.folder(root, folder), name, row["size"], RETRY, place, number, None)
            record.sql.execute("INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?, ?, ?, ?)", values)
