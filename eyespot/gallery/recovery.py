"""A ledger made again from the shards, for galleries whose `ledger.sqlite` was lost or damaged.

The facts on disk say which pictures there are and where they lay; sizes and times of the files are not trusted, so the
next look reads every file once more, but embeds none that is known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eyespot.gallery import disk
from eyespot.gallery.files import Damaged
from eyespot.gallery.index_db import RETRY, Ledger
from eyespot.storage import sqlite
from eyespot.types import EyespotError

_MEASURED = ("width", "height", "taken", "latitude", "longitude", "camera")


def recover(gallery: Path, record: Ledger) -> bool:
    """Take shards that the ledger does not know into it; whether there were any.

    Raises `EyespotError` if they hold pictures that the ledger knows elsewhere: then there are two truths.
    """
    known = record.known_shards()
    lost = [shard for shard in disk.shard_paths(gallery) if int(shard.name) not in known]
    if not lost:
        return False
    with sqlite.transaction(record.sql):
        for number, root in disk.read_or_rebuild_header(gallery).roots.items():
            record.sql.execute("INSERT OR IGNORE INTO roots VALUES (?, ?, ?)", (number, *root))
        for shard in lost:
            _take_in(record, shard)
    return True


def _take_in(record: Ledger, shard: Path) -> None:
    try:
        rows = disk.read_items(shard).to_pylist()
    except Damaged as error:
        raise EyespotError(
            f"the ledger does not know {shard}, and its facts are damaged ({error.reason}); move that folder away and "
            "run again, which embeds its pictures again"
        ) from None
    notes = disk.read_notes(shard) if disk.is_imported(shard) else disk.sound_notes(shard)
    sources = [note for note in notes if note.source]
    if sources:
        stem, form = disk.stem_of(sources[0].space), str(rows[0]["id"]).partition(":")[0] if rows else ""
        values = (int(shard.name), rows[0]["roots"][0] if rows else 0, len(rows), form, stem, sources[0].source)
        record.sql.execute("INSERT INTO imported VALUES (?, ?, ?, ?, ?, ?)", values)
        return
    if any(record.is_known(row["id"]) for row in rows):
        raise EyespotError(
            f"{shard} holds pictures that the ledger knows elsewhere; move that folder away and run again"
        )
    for number, row in enumerate(rows):
        _take_row(record, int(shard.name), number, row)


def _take_row(record: Ledger, shard: int, number: int, row: dict[str, Any]) -> None:
    measured = {name: row[name] for name in _MEASURED if row.get(name) is not None}
    if "taken" in measured:
        measured["taken"] = measured["taken"].isoformat()
    record.sql.execute("INSERT INTO items VALUES (?, ?, ?, ?)", (row["id"], shard, number, json.dumps(measured)))
    for root, path in zip(row["roots"], row["paths"], strict=True):
        values = (root, path, row["size"], RETRY, -1, row["id"], None)
        record.sql.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", values)
