"""Whether a gallery's files are what was written: at a glance, or by reading every byte.

A glance opens each file, compares sizes, shapes and types, and reads what was changed since its digest was written.
Files of older galleries have no digests until the next `eyespot index`; then their contents count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from eyespot.gallery import disk, items_table
from eyespot.gallery.files import Damaged, refuse_damaged, whole
from eyespot.storage import copies, sqlite
from eyespot.storage.digests import (
    CHANGED,
    DIGESTS,
    GONE,
    add_digests,
    damaged_at_a_glance,
    damaged_files,
    file_blake2b,
    sound_digests,
)
from eyespot.types import EyespotError, Progress


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file: its shard and space, where it has them, why, what to do, and its name below both."""

    shard: str
    stem: str
    reason: str
    way_out: str
    file: str

    def __str__(self) -> str:
        """For people, on one line."""
        where = f"shard {self.shard}" if self.shard else "gallery"
        facts = "facts, " if self.shard and self.file == disk.ITEMS else ""
        what = f"vectors of {self.stem}, " if self.file == f"{self.stem}.npy" else facts
        return f"{where}: damaged {what}{self.file} ({self.reason}); {self.way_out}"


def _vector_files(stem: str) -> list[str]:
    return [f"{stem}.npy", f"{stem}.toml"]


def check_vectors(shard: Path, stem: str, rows: int, *, full: bool) -> None:
    """Raise `Damaged` if a space's vectors in a shard are not there or not whole, at a glance or after reading all."""
    from eyespot.storage.arrays import survey

    place, names = shard / f"{stem}.npy", _vector_files(stem)
    refuse_damaged(shard, (damaged_files if full else damaged_at_a_glance)(shard, names), disk.way_out)
    note = disk.read_note(shard, stem)
    if note is None:
        raise Damaged(place, "it has no note", disk.way_out(shard))
    vectors = disk.map_vectors(shard, stem)
    if len(vectors) != rows:
        raise Damaged(place, f"it holds {len(vectors)} vectors for {rows} pictures", disk.way_out(shard))
    if disk.stem_of(note.space) != stem or note.dtype not in ("", vectors.dtype.name):
        raise Damaged(place, "its note is of other vectors", disk.way_out(shard))
    if not full or sound_digests(shard).keys() >= set(names):
        return
    if note.checksum and f"blake2b:{file_blake2b(place)}" != note.checksum:
        raise Damaged(place, CHANGED, disk.way_out(shard))
    if lost := set(survey(vectors).missing) ^ set(note.missing):
        raise Damaged(place, f"row {min(lost)} holds no vector, or its note is wrong", disk.way_out(shard))


def check_facts(shard: Path, rows: int, *, full: bool) -> None:
    """The same for a shard's table of facts, which has so many rows."""
    import pyarrow.parquet as pq

    refuse_damaged(shard, (damaged_files if full else damaged_at_a_glance)(shard, [disk.ITEMS]), disk.way_out)
    if (found := items_table.count_items(shard)) != rows:
        raise Damaged(shard / disk.ITEMS, f"it has {found} rows, not {rows}", disk.way_out(shard))
    if full:
        with (
            whole(shard / disk.ITEMS, lambda: disk.way_out(shard)) as place,
            pq.ParquetFile(place, page_checksum_verification=True) as file,
        ):
            file.read()


def why_damaged(shard: Path, stem: str, rows: int, *, full: bool) -> str:
    """What is wrong with a shard's facts (without a stem) or vectors; empty if nothing is, or they were never made."""
    try:
        if not stem:
            check_facts(shard, rows, full=full)
        elif _is_begun(shard, stem):
            check_vectors(shard, stem, rows, full=full)
    except Damaged as error:
        return error.reason
    return ""


def _is_begun(shard: Path, stem: str) -> bool:
    digests = sound_digests(shard)
    return any((shard / name).exists() or name in digests for name in _vector_files(stem))


# -- all files ----------------------------------------------------------------------------------------------


def local_folders(gallery: Path) -> list[Path]:
    """The folders of local features that are whole."""
    return sorted(place for place in gallery.glob("shards/*/local/[!.]*") if place.is_dir())


def index_folders(gallery: Path) -> list[Path]:
    """The folders of approximate indexes that are whole."""
    return sorted(place for place in gallery.glob("indexes/*/[!.]*") if place.is_dir())


def add_missing_digests(gallery: Path) -> None:
    """Digests for all files that have none: those of older galleries, whose contents were looked at before."""
    folders = [gallery, *disk.shard_paths(gallery), *local_folders(gallery), *index_folders(gallery)]
    for folder in folders:
        files = folder.rglob("*") if folder.parent.parent.name == "indexes" else folder.glob("*")
        names = (place.relative_to(folder).as_posix() for place in files if place.is_file())
        ours = [name for name in names if not f"/{name}".rpartition("/")[2].startswith((".", DIGESTS))]
        add_digests(folder, [disk.HEADER] if folder == gallery else ours)


def faults(gallery: Path, progress: Progress) -> list[Fault]:
    """All that is wrong with a gallery's files, after reading every byte; `UsageError` if there is no gallery."""
    found = [*_gallery_faults(gallery)]
    shards = _shards(gallery)
    for done, (shard, rows) in enumerate(sorted(shards.items())):
        progress("checking", done, len(shards))
        found += _shard_faults(shard, rows)
    progress("checking", len(shards), len(shards))
    found += [fault for folder in local_folders(gallery) for fault in _folder_faults(folder, folder.parent.parent)]
    found += [fault for folder in index_folders(gallery) for fault in _folder_faults(folder, gallery)]
    return found + _digest_faults(gallery)


def _folder_faults(folder: Path, above: Path) -> Iterator[Fault]:
    """Of local features, which are named below their shard, or of an index, below its gallery."""
    is_shard = above.parent.name == "shards"
    way_out = disk.way_out(above) if is_shard else _repair(above)
    for name, why in damaged_files(folder).items():
        file = (folder / name).relative_to(above).as_posix()
        yield Fault(above.name if is_shard else "", "", why, way_out, file)


def _repair(gallery: Path) -> str:
    if (gallery / disk.FETCHED).is_file():
        return f"delete {gallery} and search again, which fetches it anew"
    return f"repair it with: eyespot index --repair -g {quote(str(gallery))}"


def _gallery_faults(gallery: Path) -> Iterator[Fault]:
    """Of the header, the ledger and the index."""
    try:
        disk.read_header(gallery)
    except disk.DamagedHeader as error:
        yield Fault("", "", error.reason, _repair(gallery), disk.HEADER)
    if DIGESTS in damaged_files(gallery):
        yield Fault("", "", CHANGED, _repair(gallery), DIGESTS)
    places = [gallery / copies.LEDGER, gallery / copies.INDEX]
    for place in places:
        if place.exists() or copies.why_changed(place):
            try:
                sqlite.check(place)
            except sqlite.DamagedLedger as error:
                yield Fault("", "", error.reason, _repair(gallery), place.name)
    for name, why in damaged_files(gallery / copies.FOLDER).items():
        if name not in map(copies.name_of, places):
            yield Fault("", "", why, _repair(gallery), f"{copies.FOLDER}/{name}")


def _shards(gallery: Path) -> dict[Path, int | None]:
    """The shards that are there, and those that the index knows, with their rows if it does."""
    from eyespot.gallery.reading import NoPictureIndex, reading

    shards: dict[Path, int | None] = dict.fromkeys(disk.shard_paths(gallery))
    with suppress(NoPictureIndex, sqlite.DamagedLedger), reading(gallery) as known:
        rows = known.shard_rows() | known.imported_rows()
        counts: dict[Path, int | None] = {}
        for number, place in disk.places_of(gallery, rows).items():
            counts[place] = (counts.get(place) or 0) + rows[number]
        shards |= counts
    return shards


def _shard_faults(shard: Path, rows: int | None) -> Iterator[Fault]:
    stems = list(disk.read_or_rebuild_header(shard.parent.parent).spaces)
    damaged = damaged_files(shard)
    if DIGESTS in damaged:  # the next repair looks at what the files hold
        yield Fault(shard.name, "", damaged[DIGESTS], disk.way_out(shard), DIGESTS)
        return
    for stem in ["", *(stem for stem in stems if _is_begun(shard, stem))]:
        names = {*_vector_files(stem)} if stem else {disk.ITEMS}
        if names & damaged.keys():
            continue
        try:
            count = items_table.count_items(shard) if rows is None else rows
            if stem:
                check_vectors(shard, stem, count, full=True)
            else:
                check_facts(shard, count, full=True)
        except EyespotError as error:
            reason = error.reason if isinstance(error, Damaged) else str(error)
            file = error.name if isinstance(error, Damaged) else min(names)
            yield Fault(shard.name, stem, reason, disk.way_out(shard), file)
    for name, why in damaged.items():
        stem = next((stem for stem in stems if name.startswith(f"{stem}.")), "")
        yield Fault(shard.name, stem, why, disk.way_out(shard), name)


def _digest_faults(gallery: Path) -> list[Fault]:
    """Folders without digests, in a gallery that has some."""
    shards = disk.shard_paths(gallery)
    folders = [*shards, *local_folders(gallery), *index_folders(gallery)]
    folders += [] if (gallery / disk.FETCHED).is_file() else [gallery]  # whose header was checked when it was fetched
    folders += [gallery / copies.FOLDER] if (gallery / copies.FOLDER).is_dir() else []
    if not any((folder / DIGESTS).exists() for folder in (gallery, *shards)):
        return []
    lacking = [folder / DIGESTS for folder in folders if not (folder / DIGESTS).exists()]
    faults = []
    for place in lacking:
        name = place.relative_to(gallery).as_posix()
        shard = name.split("/")[1] if name.startswith("shards/") else ""
        faults.append(Fault(shard, "", GONE, _repair(gallery), name.removeprefix(f"shards/{shard}/")))
    return faults
