"""How well the built-in encoder finds photos by words, beside plain ConSE with the same two networks.

Three sets of real photos, read from the folder `shared` beside the repository; without it this ends with code 4.
Quality, not time: ratio = plain ConSE / ours, so below 1 means ours is better, as everywhere in `bench/`.
Plain ConSE: the ten likeliest classes' probabilities times the sentence vectors of "a photo of a <class>".
The bird words were split by a seed before anything was measured; ours was chosen on the tuning half (and on
flickr8k captions) only. The sample photos and open_wildlife were not used to choose.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from eyespot.encoders.starter import Starter, load, unit  # noqa: E402

DATA = REPOSITORY.parent / "shared" / "data"
LEAST_PHOTOS = 3  # a bird word needs so many photos
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Row = dict[str, str]
Asked = tuple[str, Callable[[Row], bool]]  # a text, and whether a row is right for it


@dataclass
class Query:
    """A text, and which photos of the set are right for it."""

    text: str
    right: NDArray[np.bool_]  # (photos,)


@dataclass
class PhotoSet:
    """Photos with queries, and the ratio of mAP that ours should stay below."""

    name: str
    files: list[Path]
    queries: list[Query]
    goal: float


# -- the sets ---------------------------------------------------------------------------------------------------


def photo_sets() -> list[PhotoSet]:
    return [*birds(), samples(), wildlife()]


def rows(name: str) -> list[Row]:
    with (DATA / name / "metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def photo_set(name: str, table: list[Row], queries: Iterable[Asked], goal: float) -> PhotoSet:
    files = [DATA / name.partition(":")[0] / row["file"] for row in table]
    asked = [Query(text, np.array([is_right(row) for row in table])) for text, is_right in queries]
    return PhotoSet(name, files, asked, goal)


def birds() -> list[PhotoSet]:
    """Photographs of Chilean birds; a query asks for the last word of an English name; two halves of the words."""
    table = [row for row in rows("chilean_birds") if row["kind"] == "photo"]
    halves = split_words(table)
    parts = {**halves, "all": [word for half in halves.values() for word in half]}
    return [
        photo_set(f"chilean_birds:{part}", table, [(f"a photo of a {w}", named(w)) for w in words], 0.833)
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


def named(word: str) -> Callable[[Row], bool]:
    return lambda row: word in re.findall(r"[a-z]+", row["english_name"].lower())


SAMPLE_QUERIES = {
    "a photo of a fish": ("categorization/fishes",),
    "a photo of a monument": ("explore_monuments/monuments", "categorization/monuments"),
    "a photo of a tool": ("categorization/tools",),
    "a photo of renewable energy": ("categorization/renewable",),
    "a photo of a farm animal": ("explore_farm_animals/animals",),
    "a photo of a wild animal": ("explore_world_animals/animals",),
}


def samples() -> PhotoSet:
    """The sample photos by category."""
    queries = [(text, in_category(*categories)) for text, categories in SAMPLE_QUERIES.items()]
    return photo_set("commons_gcompris", rows("commons_gcompris"), queries, 1.0)


def in_category(*categories: str) -> Callable[[Row], bool]:
    return lambda row: row["category"] in categories


INSECT = "Insecta|butterfly|moth-trap"
WILDLIFE_QUERIES = {  # query → pattern that the title, name, text or category of a right photo has
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


def wildlife() -> PhotoSet:
    """Camera traps, moth sheets and observations by what is in them."""
    queries = [(text, matching(pattern)) for text, pattern in WILDLIFE_QUERIES.items()]
    return photo_set("open_wildlife", rows("open_wildlife"), queries, 1.0)


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
        logits = self.ours.images(pixels)[1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds[odds < np.partition(odds, -10, axis=1)[:, -10, None]] = 0
        return unit(odds @ self.class_texts)

    def encode_texts(self, texts: list[str]) -> Floats:
        return self.ours.sentences(texts)


def photo_vectors(encoders: list[Starter | PlainConSE], files: list[Path]) -> list[Floats]:
    """The photos' vectors by each encoder, (photos, dim)."""
    pixels = np.stack([load().read(ImageOps.exif_transpose(Image.open(file)).convert("RGB")) for file in files])
    batches = [pixels[i : i + Starter.batch] for i in range(0, len(pixels), Starter.batch)]
    return [np.concatenate([encoder.encode_pixels(batch) for batch in batches]) for encoder in encoders]


# -- the measures -----------------------------------------------------------------------------------------------


def average_precision(scores: Floats, right: NDArray[np.bool_]) -> float:
    """AP over the whole ranking."""
    ranked = right[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(ranked)[ranked] / (np.flatnonzero(ranked) + 1)).mean())


def precision_at_5(scores: Floats, right: NDArray[np.bool_]) -> float:
    return float(right[np.argsort(-scores, kind="stable")[:5]].mean())


MEASURES = {"mAP": average_precision, "P@5": precision_at_5}


def result(name: str, ours: Doubles, peer: Doubles, goal: float, draws: int) -> dict[str, object]:
    """One line: the ratio of the means, with a bootstrap over the queries."""
    picks = np.random.default_rng(0).integers(0, len(ours), (draws, len(ours)))
    low, high = np.percentile(ratio(peer[picks].mean(1), ours[picks].mean(1)), (10, 90))
    line = {"name": name, "ratio": float(ratio(peer.mean(), ours.mean())), "peer": "plain ConSE, same networks"}
    line |= {"p10": float(low), "p90": float(high), "n": len(ours), "goal": goal}
    return line | {"ours": float(ours.mean()), "plain": float(peer.mean())}


def ratio(peer: Doubles, ours: Doubles) -> Doubles:
    return np.asarray(np.maximum(peer, 1e-9) / np.maximum(ours, 1e-9))


def measured(photos: PhotoSet, tables: list[Floats], draws: int) -> Iterable[dict[str, object]]:
    """One line per measure; the tables are the scores of ours and of the peer, (queries, photos)."""
    for name, measure in MEASURES.items():
        mine, plain = (per_query(measure, table, photos) for table in tables)
        goal = photos.goal if name == "mAP" else 1.0
        yield result(f"starter {photos.name} {name}", mine, plain, goal, draws)


def per_query(measure: Callable[[Floats, NDArray[np.bool_]], float], table: Floats, photos: PhotoSet) -> Doubles:
    return np.array([measure(row, query.right) for row, query in zip(table, photos.queries, strict=True)])


def shown(line: dict[str, object]) -> str:
    values = "{name:34} ours {ours:.3f}  plain ConSE {plain:.3f}  ratio {ratio:.3f} [{p10:.3f}, {p90:.3f}]"
    return f"{values}  goal {{goal}}  n {{n}}".format(**line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_const", const=json.dumps, default=shown, dest="form")
    parser.add_argument(
        "--quick", action="store_const", const=100, default=1000, dest="draws", help="a tenth of the draws"
    )
    given = parser.parse_args()
    try:
        sets = photo_sets()
    except FileNotFoundError as error:
        print(f"the photos to measure on are not there: {error.filename}", file=sys.stderr)
        return 4
    ours = load()
    encoders: list[Starter | PlainConSE] = [ours, PlainConSE(ours)]
    seen: dict[Path, list[Floats]] = {}  # the parts of the birds share their photos
    for photos in sets:
        if photos.files[0] not in seen:
            seen[photos.files[0]] = photo_vectors(encoders, photos.files)
        vectors = seen[photos.files[0]]
        texts = [query.text for query in photos.queries]
        tables = [encoder.encode_texts(texts) @ rows.T for encoder, rows in zip(encoders, vectors, strict=True)]
        for line in measured(photos, tables, given.draws):
            print(given.form(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
