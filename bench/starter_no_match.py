"""How often `starter` says "there is probably no good match", rightly and wrongly, on four sets of real photos.

The photos are read from the folder `shared` beside the repository; without it this ends with code 4. What is there and
what is not was told from the sets' metadata and captions with the kinds of WordNet, and is kept in
starter_no_match.json: by nouns that are there the rows of metadata.csv, and three lists of nouns that are not there.
Nouns that a set may show untold (trees, clothes, the breed of a dog) are in neither.
The peer is one floor for all texts, 0.20, which the note had before.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from eyespot.encoders.starter import Starter, load  # noqa: E402

DATA = REPOSITORY.parent / "shared" / "data"
QUERIES = Path(__file__).with_suffix(".json")
FLOOR = 0.2
FEW = 20  # pictures of a small collection
CAPTIONED = "flickr8k_100"
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Asked:
    """A text asked of a collection: the group it counts for, and its best score there."""

    group: str
    text: str
    best: float


@dataclass
class PhotoSet:
    """Photos of one set with their vectors, and what they show."""

    name: str
    queries: dict[str, Any]
    starter: Starter

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        with (DATA / self.name / "metadata.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    @cached_property
    def vectors(self) -> Floats:
        files = [DATA / self.name / row["file"] for row in self.rows]
        parts = [self._encoded(files[i : i + Starter.batch]) for i in range(0, len(files), Starter.batch)]
        return np.concatenate(parts)  # (photos, dim)

    def _encoded(self, files: list[Path]) -> Floats:
        pictures = [ImageOps.exif_transpose(Image.open(file)).convert("RGB") for file in files]
        return self.starter.encode_pixels(np.stack([self.starter.read(picture) for picture in pictures]))

    def showing(self, noun: str) -> list[int]:
        rows = self.queries["there"][noun]
        return list(range(len(self.rows))) if rows == "all" else list(rows)

    def best(self, text: str, rows: Any = slice(None)) -> float:
        return float((self.vectors[rows] @ self.starter.encode_texts([text])[0]).max())


# -- what is asked ------------------------------------------------------------------------------------------------


def asked(photos: PhotoSet, captions: list[str], rng: np.random.Generator) -> Iterator[Asked]:
    yield from nouns_there(photos, rng)
    for group in [group for group in photos.queries if group != "there"]:
        for noun in photos.queries[group]:
            few = rng.permutation(len(photos.rows))[:FEW]
            yield Asked(f"not there: {group}", noun, photos.best(noun))
            yield Asked(f"not there: {group}, of {FEW}", noun, photos.best(noun, few))
    is_there = photos.name == CAPTIONED
    for caption in captions if is_there else captions[::3]:
        yield Asked(f"{'there' if is_there else 'not there'}: captions", caption, photos.best(caption))


def nouns_there(photos: PhotoSet, rng: np.random.Generator) -> Iterator[Asked]:
    """Each noun of the whole set, and of one photo that shows it among others that do not."""
    for noun in photos.queries["there"]:
        showing = photos.showing(noun)
        yield Asked("there: nouns", noun, photos.best(noun))
        others = np.setdiff1d(rng.permutation(len(photos.rows)), showing, assume_unique=True)
        if len(others) >= FEW - 1:
            few = [rng.choice(showing), *others[: FEW - 1]]
            yield Asked(f"there: nouns, of {FEW}", noun, photos.best(noun, few))


def five_captions(photos: PhotoSet) -> list[str]:
    return [row[f"caption_{number}"] for row in photos.rows for number in range(1, 6)]


# -- what is said -------------------------------------------------------------------------------------------------


def measured(sets: list[PhotoSet], starter: Starter) -> Iterator[dict[str, Any]]:
    """One line per group and set, and per group of all sets: the shares of queries that get the note."""
    captions = five_captions(next(photos for photos in sets if photos.name == CAPTIONED))
    rng, everything = np.random.default_rng(0), list[Asked]()
    for photos in sets:
        told = list(asked(photos, captions, rng))
        yield from lines(photos.name, told, starter)
        everything += told
    yield from lines("all sets", everything, starter)


def lines(name: str, told: list[Asked], starter: Starter) -> Iterator[dict[str, Any]]:
    weakest = {text: starter.weakest_match(text) for text in {one.text for one in told}}
    for group in dict.fromkeys(one.group for one in told):
        mine = [one for one in told if one.group == group]
        ours = float(np.mean([one.best < weakest[one.text] for one in mine]))
        floor = float(np.mean([one.best < FLOOR for one in mine]))
        yield {"name": f"{name} {group}", "ours": ours, "floor": floor, "n": len(mine)}


def shown(line: dict[str, Any]) -> str:
    return "{name:62} ours {ours:.3f}  one floor {floor:.3f}  n {n}".format(**line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_const", const=json.dumps, default=shown, dest="form")
    given = parser.parse_args()
    starter = load()
    sets = [PhotoSet(name, queries, starter) for name, queries in json.loads(QUERIES.read_text()).items()]
    try:
        for one in measured(sets, starter):
            print(given.form(one), flush=True)
    except FileNotFoundError as error:
        print(f"the photos to measure on are not there: {error.filename}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
