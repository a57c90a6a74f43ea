"""How often `starter` notes "there is probably no good match", rightly and wrongly, on four sets of real photos.

The photos come from the shared data. What is there and what is not there was derived from the sets' metadata and
captions with the kinds of WordNet, and is in starter_no_match.json: for nouns that are there the rows of metadata.csv,
and three lists of nouns that are not there. Nouns that a set may show without saying so (trees, clothes, the breed of a
dog) are in neither. The peer is one floor for all texts, 0.20, which the note had before. A ratio is our wrong answers
over those of the peer: notes where something is there, no note where nothing is. No wrong answer
counts as half of one.

    python bench/starter_no_match.py [--quick] [--json]
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Floats, Measurement, metadata, shared
from bench.starter import encode, read_photos
from eyespot.encoders.starter import Starter, load

QUERIES = Path(__file__).with_suffix(".json")
FLOOR = 0.2
FEW = 20  # pictures of a small collection
CAPTIONED = "flickr8k_100"


@dataclass(frozen=True)
class BestScore:
    """The best score of a text in a collection, and the group that it counts for."""

    group: str
    text: str
    score: float


@dataclass(frozen=True, kw_only=True)
class NoteRate(Measurement):
    """The shares of texts that get the note, from ours and from one floor."""

    ours: float
    floor: float

    def __str__(self) -> str:
        return f"{self.name:62} ours {self.ours:.3f}  one floor {self.floor:.3f}  n {self.n}  wrong {self.ratio:.4g}"


@dataclass
class PhotoSet:
    """Photos of one set with their vectors, and what they show."""

    name: str
    queries: dict[str, Any]
    starter: Starter

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        return metadata(shared(f"data/{self.name}"))

    @cached_property
    def vectors(self) -> Floats:
        return encode(self.starter, read_photos(shared("data") / self.name / row["file"] for row in self.rows))

    def showing(self, noun: str) -> list[int]:
        rows = self.queries["there"][noun]
        return list(range(len(self.rows))) if rows == "all" else list(rows)

    def best(self, text: str, rows: Any = slice(None)) -> float:
        return float((self.vectors[rows] @ self.starter.encode_texts([text])[0]).max())


# -- texts and their best scores ------------------------------------------------------------------------------------


def best_scores(photos: PhotoSet, captions: list[str], rng: np.random.Generator, step: int) -> Iterator[BestScore]:
    """Of every step-th text."""
    yield from nouns_there(photos, rng, step)
    for group in [group for group in photos.queries if group != "there"]:
        for noun in photos.queries[group][::step]:
            few = rng.permutation(len(photos.rows))[:FEW]
            yield BestScore(f"not there: {group}", noun, photos.best(noun))
            yield BestScore(f"not there: {group}, of {FEW}", noun, photos.best(noun, few))
    is_there = photos.name == CAPTIONED
    for caption in captions[::step] if is_there else captions[:: 3 * step]:
        yield BestScore(f"{'there' if is_there else 'not there'}: captions", caption, photos.best(caption))


def nouns_there(photos: PhotoSet, rng: np.random.Generator, step: int) -> Iterator[BestScore]:
    """Each noun in the whole set, and in one photo that shows it among others that do not."""
    for noun in list(photos.queries["there"])[::step]:
        showing = photos.showing(noun)
        yield BestScore("there: nouns", noun, photos.best(noun))
        others = np.setdiff1d(rng.permutation(len(photos.rows)), showing, assume_unique=True)
        if len(others) >= FEW - 1:
            few = [rng.choice(showing), *others[: FEW - 1]]
            yield BestScore(f"there: nouns, of {FEW}", noun, photos.best(noun, few))


def five_captions(photos: PhotoSet) -> list[str]:
    return [row[f"caption_{number}"] for row in photos.rows for number in range(1, 6)]


# -- what is measured -----------------------------------------------------------------------------------------------


def note_rates(name: str, scores: list[BestScore], starter: Starter) -> Iterator[NoteRate]:
    """One for each group."""
    weakest = {text: starter.weakest_match(text) for text in {best.text for best in scores}}
    for group in dict.fromkeys(best.group for best in scores):
        of_group = [best for best in scores if best.group == group]
        ours = float(np.mean([best.score < weakest[best.text] for best in of_group]))
        floor = float(np.mean([best.score < FLOOR for best in of_group]))
        wrong, peer = (rate if group.startswith("there") else 1 - rate for rate in (ours, floor))
        ratio = max(wrong, 0.5 / len(of_group)) / max(peer, 0.5 / len(of_group))
        yield NoteRate(
            f"{name} {group}", ratio, "one floor for all texts", ratio, ratio, len(of_group), ours=ours, floor=floor
        )


def measurements(options: Namespace) -> Iterator[Measurement]:
    """One line per group and set, and per group of all sets."""
    starter, rng, everything = load(), np.random.default_rng(0), list[BestScore]()
    sets = [PhotoSet(name, queries, starter) for name, queries in json.loads(QUERIES.read_text()).items()]
    captions = five_captions(next(photos for photos in sets if photos.name == CAPTIONED))
    for photos in sets:
        scores = list(best_scores(photos, captions, rng, 10 if options.quick else 1))
        yield from note_rates(photos.name, scores, starter)
        everything += scores
    yield from note_rates("all sets", everything, starter)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the texts").run(measurements)
