"""How close indexing comes to the bare encoder: the whole pipeline against `encode_pixels` on ready arrays.

The pipeline walks, reads, hashes, decodes, embeds and writes a gallery; the bare encoder gets the same pictures as
arrays in memory, in the same batches. Goal: at least 0.85 of its pictures per second, so a time ratio of at most 1.18.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from eyespot import rooms, sample
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.photos.pictures import open_picture
from eyespot.types import Encoder, Pixels

GOAL = round(1 / 0.85, 3)


def main() -> int:
    """Measure, print, and tell by the exit code whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON line per result")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    options = parser.parse_args()
    encoder: Encoder = rooms.load("encoders", "starter")
    with tempfile.TemporaryDirectory(prefix="eyespot-bench-") as folder:
        photos = variants(Path(folder) / "photos", 1 if options.quick else 6)
        ratios = measure(encoder, photos, 3 if options.quick else 9)
    p10, median, p90 = np.percentile(ratios, [10, 50, 90]).round(3).tolist()
    result = {"name": "index/pipeline", "ratio": median, "peer": "bare encoder on ready arrays", "p10": p10, "p90": p90,
              "n": len(ratios), "goal": GOAL}  # fmt: skip
    verdict = "met" if median <= GOAL else "missed"
    print(json.dumps(result) if options.json else f"pipeline / bare encoder: {median} (p10 {p10}, p90 {p90}), "
          f"{1 / median:.2f} of its pictures per second; goal {GOAL} {verdict}")  # fmt: skip
    return 0 if median <= GOAL else 4


def variants(folder: Path, copies: int) -> list[Path]:
    """The sample photos, each several times with a trailer that makes its bytes (not its pixels) its own."""
    folder.mkdir()
    made = []
    for source in sorted(sample.photos().glob("*.jpg")):
        for copy in range(copies):
            made.append(folder / f"{copy}-{source.name}")
            made[-1].write_bytes(source.read_bytes() + bytes([copy]))
    return made


def measure(encoder: Encoder, photos: list[Path], rounds: int) -> list[float]:
    """Time of the pipeline over the bare encoder's, taken before and after it, in each round."""
    ready = [encoder.read(open_picture(place.read_bytes(), encoder.min_side).image) for place in photos]
    bare(encoder, ready[: 4 * encoder.batch])
    ratios, before = [], bare(encoder, ready)
    for number in range(rounds):
        ours = pipeline(encoder, photos[0].parent, number)
        after = bare(encoder, ready)
        ratios.append(2 * ours / (before + after))
        rate = len(photos) / ours
        print(
            f"round {number + 1}: pipeline {rate:.0f}/s, bare {2 * len(photos) / (before + after):.0f}/s",
            file=sys.stderr,
        )
        before = after
    return ratios


def bare(encoder: Encoder, ready: list[Pixels]) -> float:
    """Seconds to embed arrays that are in memory already."""
    started = time.perf_counter()
    for start in range(0, len(ready), encoder.batch):
        encoder.encode_pixels(np.stack(ready[start : start + encoder.batch]))
    return time.perf_counter() - started


def pipeline(encoder: Encoder, photos: Path, number: int) -> float:
    """Seconds to make a fresh gallery of the photos."""
    started = time.perf_counter()
    summary = index(photos.parent / f"gallery{number}", [str(photos)], [encoder], Options())
    seconds = time.perf_counter() - started
    assert summary.embedded == summary.paths and not summary.failures, summary
    return seconds


if __name__ == "__main__":
    sys.exit(main())
