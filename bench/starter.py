"""How well the built-in encoder finds photos by words, against plain ConSE with the same two networks.

Three sets of real photos from the shared data. Quality, not time: a ratio is plain ConSE / ours, so below 1 means ours
is better, as everywhere in `bench/`; p10 and p90 come from a bootstrap over the queries. Plain ConSE: the ten likeliest
classes' probabilities times the sentence vectors of "a photo of a <class>".
The bird words were split by a seed before anything was measured; ours was chosen only on the tuning half (and on
flickr8k captions). The sample photos and open_wildlife were not used to choose.

    python bench/starter.py [--quick] [--json]
"""

from __future__ import annotations

import random
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from bench.harness import Command, Floats, Measurement, Reals, metadata, shared
from eyespot.encoders.starter import Starter, load, unit

LEAST_PHOTOS = 3  # of a bird word
GOAL = 0.833  # for all bird words; elsewhere ours must not be worse
Row = dict[str, str]
Labelled = tuple[str, Callable[[Row], bool]]  # a text, and whether a row is relevant to it


@dataclass
class LabelledText:
    """A text, and which photos of the set are relevant to it."""

    text: str
    relevant: NDArray[np.bool_]  # (photos,)


@dataclass
class LabelledPhotos:
    """Photos with queries, and the goal for the ratio of mAP."""

    name: str
    files: list[Path]
    queries: list[LabelledText]
    goal: float


@dataclass(frozen=True, kw_only=True)
class Quality(Measurement):
    """The means of ours and of the peer, too."""

    ours: float
    plain: float

    def __str__(self) -> str:
        return f"{super().__str__()} (ours {self.ours:.3f}, plain {self.plain:.3f})"


# -- the sets ---------------------------------------------------------------------------------------------------


def photo_sets() -> list[LabelledPhotos]:
    return [*birds(), samples(), wildlife()]


def photo_set(name: str, table: list[Row], queries: Iterable[Labelled], goal: float = 1.0) -> LabelledPhotos:
    folder = shared("data") / name.partition(":")[0]
    texts = [LabelledText(text, np.array([is_relevant(row) for row in table])) for text, is_relevant in queries]
    return LabelledPhotos(name, [folder / row["file"] for row in table], texts, goal)


def birds() -> list[LabelledPhotos]:
    """Photographs of Chilean birds; a query is the last word of an English name; two halves of the words."""
    table = [row for row in metadata(shared("data/chilean_birds")) if row["kind"] == "photo"]
    halves = split_words(table)
    parts = {**halves, "all": [word for half in halves.values() for word in half]}
    return [
        photo_set(
            f"chilean_birds:{part}",
            table,
            [(f"a photo of a {word}", has_word(word)) for word in words],
            GOAL if part == "all" else 1.0,
        )
        for part, words in parts.items()
    ]


def split_words(table: list[Row]) -> dict[str, list[str]]:
    """The last words of names that enough photos share, shuffled with seed 0 and cut in the middle."""
    names = [re.findall(r"[a-z]+", row["english_name"].lower()) for row in table]
    photos = Counter(word for name in names for word in set(name))
    words = sorted({name[-1] for name in names if name and photos[name[-1]] >= LEAST_PHOTOS})
    random.Random(0).shuffle(words)
    middle = len(words) // 2
    return {"tuning": sorted(words[:middle]), "held_out": sorted(words[middle:])}


def has_word(word: str) -> Callable[[Row], bool]:
    return lambda row: word in re.findall(r"[a-z]+", row["english_name"].lower())


SAMPLE_QUERIES = {
    "a photo of a fish": ("categorization/fishes",),
    "a photo of a monument": ("explore_monuments/monuments", "categorization/monuments"),
    "a photo of a tool": ("categorization/tools",),
    "a photo of renewable energy": ("categorization/renewable",),
    "a photo of a farm animal": ("explore_farm_animals/animals",),
    "a photo of a wild animal": ("explore_world_animals/animals",),
}


def samples() -> LabelledPhotos:
    """The sample photos by category."""
    queries = [(text, in_category(*categories)) for text, categories in SAMPLE_QUERIES.items()]
    return photo_set("commons_gcompris", metadata(shared("data/commons_gcompris")), queries)


def in_category(*categories: str) -> Callable[[Row], bool]:
    return lambda row: row["category"] in categories


INSECT = "Insecta|butterfly|moth-trap"
WILDLIFE_QUERIES = {  # query → pattern in the title, name, text or category of a relevant photo
    "a photo of a butterfly": "butterfly",
    "moths on a white sheet": "moth-trap",
    "a photo of a heron": "Ardea",
    "a photo of a bird": "Ardea",
    "a photo of an insect": INSECT,
    "a photo of a spider": "Araneae",
    "a photo of a bee": r"\bBees?\b",
    "a photo of a wasp": "Wasp",
    "a photo of a beetle": "Coleoptera",
    "a photo of a praying mantis": "Mantodea",
    "a photo of a damselfly": "Odonata",
    "a photo of a fly": "Diptera",
    "a photo of a mushroom": "Fungi",
    "a photo of an elephant": "elephants",
    "a photo of a bear": "bear",
    "a photo of a cow": "cattle",
    "a photo of a dog": "domestic dog",
    "a photo of an ocelot": "ocelot",
    "a photo of a vehicle": "vehicle",
    "a camera trap photo": "camera trap",
}


def wildlife() -> LabelledPhotos:
    """Camera traps, moth sheets and observations by their content."""
    queries = [(text, matching(pattern)) for text, pattern in WILDLIFE_QUERIES.items()]
    return photo_set("open_wildlife", metadata(shared("data/open_wildlife")), queries)


def matching(pattern: str) -> Callable[[Row], bool]:
    fields = ("title", "scientific_name", "text", "category")
    return lambda row: any(re.search(pattern, row[field]) for field in fields)


# -- the two encoders -------------------------------------------------------------------------------------------


class PlainConSE:
    """The peer: class probabilities times sentence vectors, nothing else."""

    def __init__(self, ours: Starter) -> None:
        self.ours = ours
        names = (ours.data / "classes.txt").read_text().splitlines()
        self.class_texts = ours.sentences([f"a photo of a {name}" for name in names])  # (1000, 384)

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> Floats:
        logits = self.ours.images.run(None, {"pixels": pixels})[1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds[odds < np.partition(odds, -10, axis=1)[:, -10, None]] = 0
        return unit(odds @ self.class_texts)

    def encode_texts(self, texts: list[str]) -> Floats:
        return self.ours.sentences(texts)


def read_photos(files: Iterable[Path]) -> NDArray[np.uint8]:
    """Photos as the encoder takes them, (photos, height, width, 3)."""
    starter = load()
    return np.stack([starter.read(ImageOps.exif_transpose(Image.open(file)).convert("RGB")) for file in files])


def encode(encoder: Starter | PlainConSE, pixels: NDArray[np.uint8]) -> Floats:
    """The photos' vectors, (photos, dim)."""
    starts = range(0, len(pixels), Starter.batch)
    return np.concatenate([encoder.encode_pixels(pixels[start : start + Starter.batch]) for start in starts])


# -- what is measured ---------------------------------------------------------------------------------------------


def average_precision(scores: Floats, relevant: NDArray[np.bool_]) -> float:
    """AP over the whole ranking."""
    ranked = relevant[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(ranked)[ranked] / (np.flatnonzero(ranked) + 1)).mean())


def precision_at_5(scores: Floats, relevant: NDArray[np.bool_]) -> float:
    return float(relevant[np.argsort(-scores, kind="stable")[:5]].mean())


MEASURES = {"mAP": average_precision, "P@5": precision_at_5}


def quality(name: str, ours: Reals, plain: Reals, goal: float, draws: int) -> Quality:
    """The ratio of the means of some queries, with a bootstrap over them."""
    picks = np.random.default_rng(0).integers(0, len(ours), (draws, len(ours)))
    p10, p90 = np.percentile(ratio(plain[picks].mean(1), ours[picks].mean(1)), (10, 90)).tolist()
    means = {"ours": float(ours.mean()), "plain": float(plain.mean())}
    return Quality(
        name, float(ratio(plain.mean(), ours.mean())), "plain ConSE, same networks", p10, p90, len(ours), goal, **means
    )


def ratio(plain: Reals, ours: Reals) -> Reals:
    return np.asarray(np.maximum(plain, 1e-9) / np.maximum(ours, 1e-9))


def measurements(options: Namespace) -> Iterator[Measurement]:
    starter = load()
    encoders: list[Starter | PlainConSE] = [starter, PlainConSE(starter)]

    @cache  # the parts of the birds share their photos
    def vectors(files: tuple[Path, ...]) -> list[Floats]:
        pixels = read_photos(files)
        return [encode(encoder, pixels) for encoder in encoders]

    for photos in photo_sets():
        texts = [query.text for query in photos.queries]
        both = zip(encoders, vectors(tuple(photos.files)), strict=True)
        tables = [encoder.encode_texts(texts) @ rows.T for encoder, rows in both]  # (queries, photos)
        for name, measure in MEASURES.items():
            ours, plain = (
                np.array([measure(row, query.relevant) for row, query in zip(table, photos.queries, strict=True)])
                for table in tables
            )
            goal, draws = photos.goal if name == "mAP" else 1.0, 100 if options.quick else 1000
            yield quality(f"starter {photos.name} {name}", ours, plain, goal, draws)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the draws").run(measurements)
