"""How close indexing comes to the bare encoder: the whole pipeline against `encode_pixels` on ready arrays.

The pipeline walks, reads, hashes, decodes, embeds and writes a gallery; the bare encoder gets the same pictures as
arrays in memory, in the same batches. Goal: at least 0.85 of its pictures per second, so a time ratio of at most 1.18.

Colours: 12-megapixel photos in Display P3, as phones write them, which are converted to sRGB, against the same photos
without a profile, in processor time. Goal: 1.05.

The ledger alone, without pictures: bytes and processor time for each of 200,000 made-up ones, against one plain table
of path, size, time and digest in SQLite; and a look that finds nothing new, against the walk that it makes. The layout
before December 2026 had 609 bytes a picture with such files and facts.

    python bench/index.py [--quick] [--json]
"""

from __future__ import annotations

import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from PIL import Image

from bench.harness import Command, Measurement, Race, race, say
from eyespot import rooms, sample
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.picture_index import PictureIndex
from eyespot.photos.decode_workers import ReadPicture
from eyespot.photos.found import Seen
from eyespot.photos.pictures import id_of, open_picture
from eyespot.photos.places import Root
from eyespot.photos.sources import scan
from eyespot.storage.copies import INDEX
from eyespot.types import Encoder
from tests.photos.test_colours import stored_in

GOAL = round(1 / 0.85, 3)
_FACTS = {"width": 4000, "height": 3000, "taken": "2021-06-01T12:00:00", "camera": "NIKON D750", "format": "JPEG"}


def variants(folder: Path, copies: int) -> list[Path]:
    """The sample photos, each several times with a trailer that makes its bytes unique and leaves its pixels alone."""
    folder.mkdir()
    files = []
    for source in sorted(sample.photos().glob("*.jpg")):
        for copy in range(copies):
            files.append(folder / f"{copy}-{source.name}")
            files[-1].write_bytes(source.read_bytes() + bytes([copy]))
    return files


def phone_photos(folder: Path, count: int, profile: bytes | None) -> Path:
    """Photos of 12 megapixels and some 3 MB, made of sample photos side by side."""
    folder.mkdir()
    parts = [Image.open(place).convert("RGB") for place in sorted(sample.photos().glob("*.jpg"))[:60]]
    for number in range(count):
        made = Image.new("RGB", (4032, 3024))
        for at in range(13 * 14):
            made.paste(parts[(at + 7 * number) % len(parts)].resize((320, 224)), (at % 13 * 320, at // 13 * 224))
        made.save(folder / f"{number}.jpg", quality=92, icc_profile=profile)
    return folder


def colour_measurements(options: Namespace, encoder: Encoder) -> Iterator[Measurement]:
    _, p3 = stored_in("P3")
    managed, plain = (phone_photos(options.folder / name, 12, icc) for name, icc in (("p3", p3), ("srgb", None)))

    def indexed(place: Path) -> Callable[[int], None]:
        def run(number: int) -> None:
            summary = index(f"{place}-{number}-{time.perf_counter_ns()}", [str(place)], [encoder], Options())
            assert summary.embedded == 12, summary

        return run

    rounds = range(4 if options.quick else 20)
    yield from race([(Race("index/Display P3", "the same in sRGB", indexed(managed), indexed(plain), 1.05), rounds)])


def measurements(options: Namespace) -> Iterator[Measurement]:
    encoder: Encoder = rooms.load("encoders", "starter")
    photos = variants(options.folder / "photos", 1 if options.quick else 6)
    ready = [encoder.read(open_picture(file.read_bytes(), encoder.min_side).image) for file in photos]

    def bare(_: int) -> None:
        for start in range(0, len(ready), encoder.batch):
            encoder.encode_pixels(np.stack(ready[start : start + encoder.batch]))

    def pipeline(number: int) -> None:
        summary = index(options.folder / f"gallery{number}", [str(options.folder / "photos")], [encoder], Options())
        assert summary.embedded == summary.paths and not summary.failures, summary

    peer = "bare encoder on ready arrays"
    rounds = range(4 if options.quick else 10)
    yield from race([(Race("index/pipeline", peer, pipeline, bare, GOAL, time.perf_counter), rounds)])
    yield from colour_measurements(options, encoder)
    yield from ledger_measurements(options.folder, 20_000 if options.quick else 200_000)


# -- the ledger alone ----------------------------------------------------------------------------------------


def empty_files(folder: Path, count: int) -> Root:
    """Files without a byte, 500 in a folder, named as cameras and people name them."""
    for number in range(count):
        batch, year = number // 500, 2005 + number // 500 % 20
        place = folder / f"{year}" / f"{year}-{1 + batch % 12:02d}_Field_trip_Alps_{batch:05d}"
        if number % 500 == 0:
            place.mkdir(parents=True)
        (place / f"IMG_{number:07d}.JPG").touch()
    return Root(str(folder), "folder")


def take_down(ledger: PictureIndex, root: Root) -> None:
    """All files of a root as new pictures with facts, without reading any."""
    ledger.visit(ledger.add_root(root), root)
    ledger.make_plan(None, False)
    for shard in dict.fromkeys(shard for shard, _ in ledger.planned()):
        outcomes = [ReadPicture(one, id_of(one.seen.path.encode())) for one in ledger.plan_of(shard)]
        facts = [{**_FACTS, "latitude": row / 997, "longitude": row / 499} for row in range(len(outcomes))]
        with ledger.transaction():
            ledger.record(shard, outcomes, {one.id or "": its for one, its in zip(outcomes, facts, strict=True)})


def plain_table(place: Path, root: Root) -> None:
    """The least that an index of files needs: what one would write without thinking."""
    with closing(sqlite3.connect(place)) as sql, sql:
        sql.execute("CREATE TABLE files(path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, digest TEXT)")
        for one in scan(root):
            if isinstance(one, Seen):
                values = (one.path, one.size, one.mtime, id_of(one.path.encode()))
                sql.execute("INSERT INTO files VALUES (?, ?, ?, ?)", values)


def ledger_measurements(folder: Path, count: int) -> Iterator[Measurement]:
    root = empty_files(folder / "many", count)
    ours, plain = folder / "gallery", folder / "plain.sqlite"
    walk = seconds(lambda: sum(1 for _ in scan(root)))
    peer_time = seconds(lambda: plain_table(plain, root)) - walk
    with closing(PictureIndex(ours)) as ledger:
        own_time = seconds(lambda: take_down(ledger, root)) - walk
        ledger.counts()
    size, peer_size = (ours / INDEX).stat().st_size, plain.stat().st_size
    say(f"ledger: {size / count:.0f} bytes and {own_time / count * 1e6:.1f} µs a picture")
    peer = "one plain table of path, size, time and digest"
    yield Measurement.from_trials(
        "index/ledger bytes a picture", [size / peer_size], peer, round(200 * count / peer_size, 2)
    )
    yield Measurement.from_trials("index/ledger time a picture", [own_time / peer_time], peer)
    ratios = []
    for _ in range(5):
        walk = seconds(lambda: sum(1 for _ in scan(root)))
        with closing(PictureIndex(ours)) as ledger:
            ratios.append(seconds(lambda: look_again(ledger, root)) / walk)
    yield Measurement.from_trials("index/look that finds nothing new", ratios, "the bare walk", 1.25)


def look_again(ledger: PictureIndex, root: Root) -> None:
    number = ledger.add_root(root)
    ledger.begin_visits()
    ledger.visit(number, root)
    ledger.make_plan(None, False)
    assert not ledger.planned() and not ledger.gone(number)[1] and ledger.counts()[0]


def seconds(work: Callable[[], object]) -> float:
    """Processor time: the disk is another matter."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    Command(__doc__).run(measurements)
