"""Damage files of a gallery at random, and count what `eyespot doctor` notices and `eyespot index --repair` restores.

    python scripts/damage.py                  500 damages, some minutes
    python scripts/damage.py --count 50 --seed 7

A gallery of sample photos with codes, local descriptors, an approximate index (where faiss is installed), judgements
and captions is made once. Then, on a fresh copy each time, one file is damaged: a byte is flipped and the date put
back, the end is cut off, or the file is deleted. What is repaired must be the undamaged gallery to the bit; of the
ledger and the index, whose pages SQLite may lay out otherwise, every row of every table. A damaged file that a repair
puts aside does not count. Exits with 1 if a damage is not noticed, or neither repaired nor said to be lost.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot import rooms, sample
from eyespot.curate.captions import SCHEMA as CAPTIONS
from eyespot.gallery.describing import Describing, describe
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.integrity import faults
from eyespot.gallery.view import Gallery
from eyespot.ledger.judgements import Judgements
from eyespot.search.index_choice import Measured, building, store_index, stored_of
from eyespot.storage import sqlite
from eyespot.storage.copies import INDEX, LEDGER
from eyespot.storage.digests import DIGESTS
from eyespot.types import Encoder, Judgement, Query, Term, Verdict, no_progress

PHOTOS, SHARD_ROWS = 24, 8
KINDS = ("flipped", "cut", "deleted")


@dataclass(frozen=True)
class Outcome:
    """What became of one damage: whether it was noticed, what differs after the repair, and what is said to be lost."""

    kind: str
    file: str
    noticed: bool
    differs: list[str]
    lost: list[str]

    @property
    def is_silent(self) -> bool:
        """Whether nobody would have known."""
        return not self.noticed or bool(self.differs and not self.lost)


def build(folder: Path, encoder: Encoder) -> Path:
    """A gallery of everything that a gallery can hold, with its photos beside it."""
    photos, gallery = folder / "photos", folder / "sound"
    photos.mkdir(parents=True)
    for photo in sorted(Path(sample.photos()).glob("*.jpg"))[:PHOTOS]:
        shutil.copy(photo, photos)
    (photos / "none.jpg").write_bytes(b"none")
    rows = "".join(f"{place.name},{number}\n" for number, place in enumerate(sorted(photos.glob("[a-m]*.jpg"))))
    (photos / "metadata.csv").write_text(f"file_name,number\n{rows}")
    index(gallery, [str(photos)], [encoder], Options(shard_rows=SHARD_ROWS, codes=True))
    describe(gallery, rooms.load("descriptors", "sift"), Describing(20))
    _store_index(gallery)
    _record(gallery)
    index(gallery, [], [encoder], Options(repair=True))  # which leaves nothing for a repair to add
    return gallery


def _store_index(gallery: Path) -> None:
    try:
        import faiss  # noqa: F401
    except ImportError:
        return
    view = Gallery(gallery).view(Gallery(gallery).stem())
    with building(view) as place:
        settings = {"kind": "pq", "parts": 2, "probes": 1, "depth": 100}
        rooms.load("indexes", "faiss", view.blocks, folder=place / "faiss", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(1.0, 50, 10, "drawn")), place / "faiss")


def _record(gallery: Path) -> None:
    queries = [Query(text, (Term(1.0, text=text),)) for text in ("heron", "bridge")]
    with Judgements(gallery / "ledger.sqlite") as judgements:
        for query, digest in judgements.enter(queries).items():
            verdicts = [Verdict(grade=number % 2, reason=f"{query.id} {number}") for number in range(20)]
            judgements.record(
                Judgement(digest, f"{number}", judge, "prompt", verdict, at=1.0)
                for number, verdict in enumerate(verdicts)
                for judge in ("person:ada", "model")
            )
    with closing(sqlite.connect(gallery / "ledger.sqlite", CAPTIONS)) as sql:
        sql.execute("INSERT INTO captions VALUES ('model', 'prompt', 'image', 'a heron', 'a heron by the water', 1.0)")


# What is numbered in the order in which it came, or says when: another once a ledger was made again
_NUMBERED = frozenset({"pictures", "spans", "folders", "paths", "words", "tallies", "stamps", "visits"})
_PICTURES = """SELECT hex(id), s.shard, s.row + p.number - s.first, width, height, taken, latitude,
    longitude, c.word, f.word, more FROM pictures p JOIN spans s ON p.number BETWEEN s.first AND s.first + s.rows - 1
    LEFT JOIN words c ON c.number = camera LEFT JOIN words f ON f.number = format"""


def contents(gallery: Path) -> dict[str, Any]:
    """What must be the same: the bytes of each file, and the rows of the ledger."""
    Judgements(gallery / "ledger.sqlite").close()  # each store takes its rows from the copies when it opens the ledger
    sqlite.connect(gallery / "ledger.sqlite", CAPTIONS).close()
    held: dict[str, Any] = {}
    for place in files_of(gallery):
        name = place.relative_to(gallery).as_posix()
        if name == LEDGER:
            held |= {f"{name}, {table}": rows for table, rows in _rows(place).items()}
        elif name == INDEX:
            held |= {f"{name}, {table}": rows for table, rows in _index_rows(place).items()}
        elif name == f"ledger/{DIGESTS}":
            held[name] = [line for line in place.read_text().splitlines() if line.endswith(".parquet")]
        else:
            held[name] = place.read_bytes()
    return held


def _rows(place: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(place)) as sql:
        tables = [name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: sorted(sql.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}


def _index_rows(place: Path) -> dict[str, list[Any]]:
    rows = {table: found for table, found in _rows(place).items() if table not in _NUMBERED}
    with closing(sqlite3.connect(place)) as sql:
        for name, query in {"files": "SELECT * FROM files", "pictures": _PICTURES}.items():
            rows[name] = sorted(sql.execute(query), key=repr)
    return rows


def files_of(gallery: Path) -> list[Path]:
    """All files but locks, which hold nothing, and damaged ones that a repair put aside."""
    files = (place for place in gallery.rglob("*") if place.is_file() and ".damaged" not in place.name)
    return sorted(place for place in files if not place.name.endswith("lock"))


def strike(place: Path, kind: str, chance: random.Random) -> None:
    """Damage a file; a flip leaves its date."""
    data, found = bytearray(place.read_bytes()), place.stat()
    if kind == "deleted" or not data:
        place.unlink()
        return
    at = chance.randrange(len(data))
    if kind == "cut":
        os.truncate(place, at)
        return
    data[at] ^= 1 << chance.randrange(8)
    place.write_bytes(data)
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))


def try_one(sound: Path, before: dict[str, Any], encoder: Encoder, chance: random.Random) -> Outcome:
    """Damage one file of a copy of the gallery, look, repair and compare."""
    gallery = sound.with_name("damaged")
    shutil.rmtree(gallery, ignore_errors=True)
    shutil.copytree(sound, gallery)
    place, kind = chance.choice(files_of(gallery)), chance.choice(KINDS)
    name = place.relative_to(gallery).as_posix()
    strike(place, kind, chance)
    noticed = any(name in (fault.file, f"shards/{fault.shard}/{fault.file}") for fault in faults(gallery, no_progress))
    summary = index(gallery, [], [encoder], Options(repair=True))
    describe(gallery, rooms.load("descriptors", "sift"), Describing(20))  # what a repair removes is made by its verb
    if not list(gallery.glob("indexes/*/faiss")):
        _store_index(gallery)
    after = contents(gallery)
    differs = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    lost = [note for note in summary.notes if "lost for good" in note or "stay damaged" in note or "stays" in note]
    return Outcome(kind, name, noticed, differs, lost + [str(fault) for fault in summary.damaged])


def run(folder: Path, count: int, seed: int) -> list[Outcome]:
    """So many damages, one at a time."""
    encoder: Encoder = rooms.load("encoders", "starter")
    sound = build(folder, encoder)
    before, chance = contents(sound), random.Random(seed)
    return [try_one(sound, before, encoder, chance) for _ in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eyespot-damage-") as folder:
        outcomes = run(Path(folder), options.count, options.seed)
    silent = [outcome for outcome in outcomes if outcome.is_silent]
    for outcome in outcomes:
        if outcome.is_silent or outcome.differs:
            print(f"{outcome.file} {outcome.kind}: noticed {outcome.noticed}; differs: {', '.join(outcome.differs)}")
            print("".join(f"    {sentence}\n" for sentence in outcome.lost), end="")
    counts = Counter("said to be lost" if outcome.differs else "repaired" for outcome in outcomes)
    noticed = sum(outcome.noticed for outcome in outcomes)
    kinds = ", ".join(f"{number} {kind}" for kind, number in Counter(outcome.kind for outcome in outcomes).items())
    print(
        f"{len(outcomes)} damages ({kinds}) over {len({outcome.file for outcome in outcomes})} files: {noticed} noticed"
    )
    print(f"{counts['repaired']} repaired to the bit, {counts['said to be lost']} not; {len(silent)} silent")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
