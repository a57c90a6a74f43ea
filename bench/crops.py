"""Several looks, one vector: the mean of a picture and N parts of it against the whole picture alone, with `starter`.

Captions of Flickr8k's hundred sample images, English names of Chilean birds, titles of the sample photos and of the
wildlife photos. The measure is RR of the pictures that a text belongs to; paired sign-flip tests over all queries,
no correction over the numbers of parts. A ratio is the mean RR of whole pictures over that of crops, without a goal:
what parts bring depends on the photos. Sets that are missing are left out.

    python bench/crops.py [--quick] [--json] [--data DIR]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import SHARED, BenchmarkError, Command, Measurement, metadata, say
from bench.quari_learning import leads
from bench.quari_real import SETS, CaptionedPhotos, embedded, relevant
from eyespot import rooms
from eyespot.types import Qrels


def wildlife(data: Path) -> CaptionedPhotos:
    folder = data / "open_wildlife"
    rows = metadata(folder)
    titles = [row["title"] for row in rows]
    return CaptionedPhotos([folder / row["file"] for row in rows], titles, [[title] for title in titles])


def rankings(photos: CaptionedPhotos, name: str, encoder: str) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """The ranking of every caption in an encoder's space, and the pictures that it belongs to."""
    vectors = embedded(name, photos, rooms.load("encoders", encoder))
    texts = np.arange(len(vectors.texts))
    best = np.argsort(-(vectors.texts @ vectors.images.T), axis=1, kind="stable")  # (n, m)
    return {f"{at}": best[at].astype(str).tolist() for at in texts}, relevant(vectors, texts)


def measurements(options: Namespace) -> Iterator[Measurement]:
    counts = (5,) if options.quick else (4, 5, 9)
    some = False
    for name, read in (SETS | {"wildlife titles": wildlife}).items():
        try:
            photos = read(options.data)
        except FileNotFoundError as missing:
            say(f"{name} is left out: {missing.filename} is missing")
            continue
        some = True
        whole, grades = rankings(photos, name, "starter")
        for count in counts:
            crops, _ = rankings(photos, name, f"crops:{count}:starter")
            for lead in leads(name, {f"crops:{count}": crops, "whole": whole}, Qrels(grades), "RR"):
                yield replace(lead, name=f"{name}, crops:{count}", goal=None)
    if not some:
        raise BenchmarkError("no set of photos is there; say where with --data")


if __name__ == "__main__":
    command = Command(__doc__, quick="five parts only")
    command.add_argument("--data", type=Path, default=SHARED / "data", help="the folder of the sets")
    command.run(measurements)
