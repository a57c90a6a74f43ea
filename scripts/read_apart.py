"""Index photos by processes that read, as a card has them, and by threads: `python read_apart.py PHOTOS MODEL`.

The two galleries must have the same pictures and vectors. It runs in the environment of the extra [torch] alone.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eyespot import rooms
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.reading import KnownInIndex
from eyespot.gallery.view import Gallery
from eyespot.photos.decode_processes import ProcessReader


def vectors(gallery: Path) -> dict[str, bytes]:
    """The vector of each picture, by its id."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    rows = np.flatnonzero(view.live).tolist()
    every = np.concatenate(view.blocks)
    return {fact["id"]: every[row].tobytes() for fact, row in zip(view.facts(rows), rows, strict=True)}


def main(photos: str, model: str) -> None:
    encoder = rooms.load("encoders", f"hf:{model}", device="cpu")
    with TemporaryDirectory() as place:
        threads, processes = Path(place, "threads"), Path(place, "processes")
        index(threads, [photos], [encoder], Options())
        known = partial(KnownInIndex, processes)
        options = Options(reader_factory=lambda encoders: ProcessReader(known, encoders, 2))
        index(processes, [photos], [encoder], options)
        found = vectors(processes)
        if not found or found != vectors(threads):
            sys.exit("processes and threads differ")
        print(f"{len(found)} pictures, the same vectors")


if __name__ == "__main__":
    main(*sys.argv[1:3])
