"""How close indexing comes to the bare encoder: the whole pipeline against `encode_pixels` on ready arrays.

The pipeline walks, reads, hashes, decodes, embeds and writes a gallery; the bare encoder gets the same pictures as
arrays in memory, in the same batches. Goal: at least 0.85 of its pictures per second, so a time ratio of at most 1.18.

    python bench/index.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, Race, race
from eyespot import rooms, sample
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.photos.pictures import open_picture
from eyespot.types import Encoder

GOAL = round(1 / 0.85, 3)


def variants(folder: Path, copies: int) -> list[Path]:
    """The sample photos, each several times with a trailer that makes its bytes unique and leaves its pixels alone."""
    folder.mkdir()
    files = []
    for source in sorted(sample.photos().glob("*.jpg")):
        for copy in range(copies):
            files.append(folder / f"{copy}-{source.name}")
            files[-1].write_bytes(source.read_bytes() + bytes([copy]))
    return files


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
    return race([(Race("index/pipeline", peer, pipeline, bare, GOAL, time.perf_counter), rounds)])


if __name__ == "__main__":
    Command(__doc__).run(measurements)
