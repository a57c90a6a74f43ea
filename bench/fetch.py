"""The first fetch of a published gallery against a plain copy of the same files, fsspec's `get(recursive=True)`.

A gallery has two encoders' vectors, and codes of both. `first answer` is the time from nothing to the ten nearest
rows of one encoder to a vector, `whole copy` that until every file has come; both with their digests compared and their
bytes flushed, which the plain copy leaves out. The gallery lies in small shards, as index runs leave them, and again in
one piece, as `eyespot compact` does. Ratios are of wall time, for several threads work; `--cpu` takes the CPU time of
all threads, on a machine that others use too.

    python bench/fetch.py [--quick] [--json] [--s3] [--cpu]

`--s3` takes a tenth of the shards from a bucket of moto's S3 server, which works in this process.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, Race, clusters, say
from bench.serve import facts
from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.remote import EVERYTHING, FACTS, fetch, publish
from eyespot.kernels.codes import write_codes
from eyespot.photos.places import Root
from eyespot.search.collection import Collection
from eyespot.storage.atomic import new_folder
from eyespot.types import Space

SHARDS, ROWS = (500, 1000, 2000), 32  # rows of each shard
PEER = "fsspec get(recursive=True)"


def make_gallery(folder: Path, shards: int, rows: int) -> Path:
    """Made-up pictures with the vectors of two encoders in float16, and codes of both; all shards are one, linked."""
    own: Space = rooms.load("encoders", "starter").space
    spaces, world, rng = [own, replace(own, encoder="other")], clusters(300, own.dim), np.random.default_rng(5)
    folder.mkdir(parents=True)
    with new_folder(disk.shard_path(folder, 0)) as shard:
        disk.write_items(shard, facts(rng, 0, rows))
        for space in spaces:
            vectors: Any = world.draw(rows).astype(np.float16)  # (rows, dim)
            disk.write_vectors(shard, vectors, disk.SpaceNote(space, [], []))
            write_codes(vectors, shard / disk.stem_of(space))
    for number in range(1, shards):
        shutil.copytree(disk.shard_path(folder, 0), folder / "shards" / f"{number:05d}", copy_function=os.link)
    stems = {disk.stem_of(space): space for space in spaces}
    disk.write_header(folder, disk.Header({0: Root("/photos", "folder")}, stems, disk.stem_of(own), shards * rows))
    return folder


@contextmanager
def bucket() -> Iterator[str]:
    """An empty bucket of a server on this machine."""
    import fsspec
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "some", "AWS_SECRET_ACCESS_KEY": "thing", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update({**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}"})
    try:
        fsspec.filesystem("s3").makedirs("birds", exist_ok=True)
        yield "s3://birds"
    finally:
        server.stop()


def first_answer(url: str, copy: Path) -> int:
    """From nothing to the nearest rows; how many."""
    shutil.rmtree(copy, ignore_errors=True)
    collection = Collection(fetch(url, copy, part=FACTS))
    query = np.ones((1, collection.view.space.dim), np.float32)
    return len(collection.index.search(query, 10, collection.allowed()).rows[0])


def whole_copy(url: str, copy: Path) -> int:
    """From nothing to every file."""
    shutil.rmtree(copy, ignore_errors=True)
    return len(list(fetch(url, copy, part=EVERYTHING).glob("shards/*/*")))


def plain_copy(url: str, copy: Path) -> int:
    """The files as they lie at the address, nothing compared or flushed."""
    import fsspec

    shutil.rmtree(copy, ignore_errors=True)
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    fs.get(root, str(copy), recursive=True)
    return len(list(copy.glob("shards/*/*")))


def measured(name: str, url: str, folder: Path, options: Namespace) -> Iterator[Measurement]:
    """Both, with a plain copy before and after each."""
    rounds, clock = 3 if options.quick or options.cpu else 5, time.process_time if options.cpu else time.perf_counter
    theirs = partial(plain_copy, url)
    for what, ours in (("first-answer", first_answer), ("whole-copy", whole_copy)):
        race = Race(f"{name}/{what}", PEER, partial(ours, url), theirs, clock=clock)
        for number in range(rounds + 1):
            copy = folder / f"copy{number}"
            (race.run if number else race.warm)(copy)
            shutil.rmtree(copy)
        yield race.measurement()


def measurements(options: Namespace) -> Iterator[Measurement]:
    small = 10 if options.quick or options.s3 else 1
    for count in (shards // small for shards in SHARDS):
        for kind, shards, rows in (("shards", count, ROWS), ("segment", 1, count * ROWS)):
            folder = options.folder / f"{kind}{count}"
            gallery = make_gallery(folder / "gallery", shards, rows)
            if options.s3:
                with bucket() as root:
                    publish(gallery, f"{root}/{kind}{count}")
                    yield from measured(f"s3/{count}-{kind}", f"{root}/{kind}{count}", folder, options)
            else:
                publish(gallery, f"file://{folder}/store")
                yield from measured(f"file/{count}-{kind}", f"file://{folder}/store", folder, options)
            say(f"{kind} {count}: {sum(file.stat().st_size for file in gallery.rglob('*.*')) / 1e6:.0f} MB")
            shutil.rmtree(folder)


if __name__ == "__main__":
    command = Command(__doc__, quick="a tenth of the shards, fewer rounds")
    command.add_argument("--s3", action="store_true", help="from a bucket of moto's S3 server")
    command.add_argument("--cpu", action="store_true", help="CPU time of all threads")
    command.run(measurements)
