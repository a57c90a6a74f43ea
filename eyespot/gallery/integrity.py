"""Whether a gallery's shards are what was written: at a glance, or by reading every byte.

A glance opens each file and compares sizes, shapes and types. A full look also compares checksums and finds vectors
without a direction; vectors of older galleries have no checksum, and those imported in place have none either.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from eyespot.gallery import disk
from eyespot.gallery.files import Damaged, checksum_of, whole
from eyespot.storage import sqlite
from eyespot.types import EyespotError, Progress

Look = Callable[[Path, str, int], None]  # shard, space, rows that it should have


class Fault(NamedTuple):
    """What is wrong with a shard: with its facts, or with the vectors of a space."""

    shard: str
    stem: str  # empty: its facts
    reason: str
    way_out: str


def glance_at_vectors(shard: Path, stem: str, rows: int) -> None:
    """Raise `Damaged` if a space's vectors in a shard are not there or not whole, as far as their files' heads tell."""
    place = shard / f"{stem}.npy"
    note = disk.read_note(shard, stem)
    if note is None:
        raise Damaged(place, "it has no note", disk.way_out(shard))
    vectors = disk.map_vectors(shard, stem)
    if len(vectors) != rows:
        raise Damaged(place, f"it holds {len(vectors)} vectors for {rows} pictures", disk.way_out(shard))
    if disk.stem_of(note.space) != stem or note.dtype not in ("", vectors.dtype.name):
        raise Damaged(place, "its note is of other vectors", disk.way_out(shard))


def look_at_vectors(shard: Path, stem: str, rows: int) -> None:
    """The same after reading all of them."""
    from eyespot.gallery.formats.arrays import survey

    glance_at_vectors(shard, stem, rows)
    place, note = shard / f"{stem}.npy", disk.read_note(shard, stem)
    assert note is not None
    if note.checksum and checksum_of(place) != note.checksum:
        raise Damaged(place, "its bytes are not those that were written", disk.way_out(shard))
    lost = set(survey(disk.map_vectors(shard, stem)).missing) ^ set(note.missing)
    if lost:
        raise Damaged(place, f"row {min(lost)} holds no vector, or its note is wrong", disk.way_out(shard))


def glance_at_facts(shard: Path, _stem: str, rows: int) -> None:
    """Raise `Damaged` if a shard's table of facts is not there, cut, or of another number of rows."""
    if (found := disk.count_items(shard)) != rows:
        raise Damaged(shard / "items.parquet", f"it has {found} rows, not {rows}", disk.way_out(shard))


def look_at_facts(shard: Path, _stem: str, rows: int) -> None:
    """The same after reading all of it."""
    import pyarrow.parquet as pq

    glance_at_facts(shard, _stem, rows)
    with (
        whole(shard / "items.parquet", lambda: disk.way_out(shard)) as place,
        pq.ParquetFile(place, page_checksum_verification=True) as file,
    ):
        file.read()


def why_damaged(look: Look, shard: Path, stem: str, rows: int) -> str:
    """What a look finds wrong; empty if nothing is, or if the vectors were never made."""
    if stem and not _is_begun(shard, stem):
        return ""
    try:
        look(shard, stem, rows)
    except Damaged as error:
        return error.reason
    return ""


def _is_begun(shard: Path, stem: str) -> bool:
    return any((shard / f"{stem}.{suffix}").exists() for suffix in ("toml", "npy"))


def faults(gallery: Path, progress: Progress) -> list[Fault]:
    """All that is wrong with a gallery's shards, after reading every byte of them.

    Raises `EyespotError` if `gallery.toml` or the ledger is damaged.
    """
    from eyespot.gallery.reading import NoLedger, reading

    stems = list(disk.read_header(gallery).spaces)
    # The shards that are there, and those that the ledger knows, with their rows if it does
    rows: dict[Path, int | None] = dict.fromkeys(disk.shard_paths(gallery))
    with suppress(NoLedger), reading(gallery) as known:
        sqlite.check(gallery / "ledger.sqlite")
        imported = dict(known.sql.execute("SELECT shard, rows FROM imported").fetchall())
        rows |= {disk.shard_path(gallery, shard): count for shard, count in (known.shard_rows() | imported).items()}
    found = []
    for done, (shard, count) in enumerate(sorted(rows.items())):
        progress("checking", done, len(rows))
        looks = [(look_at_facts, ""), *((look_at_vectors, stem) for stem in stems if _is_begun(shard, stem))]
        for look, stem in looks:
            try:
                look(shard, stem, disk.count_items(shard) if count is None else count)
            except EyespotError as error:
                reason = error.reason if isinstance(error, Damaged) else str(error)
                found.append(Fault(shard.name, stem, reason, disk.way_out(shard)))
    progress("checking", len(rows), len(rows))
    return found
