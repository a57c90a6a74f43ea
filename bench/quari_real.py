"""QuARI on few real pairs: what it learns from some hundred captioned photos, against the frozen space and TA.

Captions of Flickr8k's hundred sample images, the English names of Chilean birds, and the titles of the sample photos,
in the vectors of `starter`. The images of each set are parted into folds; what is trained on the other folds of all
sets ranks all images of a set for the captions of the fold left out. The measure is RR of the caption's own image, for
birds of the first photo of the species; paired sign-flip tests over all queries, Holm's correction. No goal: so few
pairs may teach nothing, and the table says what came out. Sets that are not there are left out and said.

    python bench/quari_real.py [--quick] [--json] [--data DIR]
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.quari_learning import Scoring, adapted_by, frozen, result_of, say, show
from eyespot import rooms, sample
from eyespot.adapters import linear
from eyespot.adapters.quari import Config
from eyespot.adapters.quari.mining import Mining, mine
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
from eyespot.extras import install_line
from eyespot.gallery.photos.pictures import open_picture
from eyespot.metrics import compare, evaluate
from eyespot.types import Encoder, Qrels, Run

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDS = 5
SHAPE = Config(512, low_rank_dim=8, hidden_dim=128, num_steps=2, nhead=4, num_layers=2)
# The released recipe, but for a batch that so few pairs fill and a validation after every other epoch.
RECIPE = TrainingSettings(batch=64, accumulate=1, epochs=10, validate_every=25, patience=5, device="cpu")


class Told(NamedTuple):
    """One set: its images (m, dim), its texts (n, dim), the row of each text's image (n,), and what images show."""

    name: str
    images: NDArray[np.float32]
    texts: NDArray[np.float32]
    of: NDArray[np.int64]
    shown: list[str]  # images with the same are all right answers


class Rows(NamedTuple):
    """The pictures of a set, what each shows, and its captions."""

    files: list[Path]
    shown: list[str]
    captions: list[list[str]]


def flickr(data: Path) -> Rows:
    found = _table(data / "flickr8k_100" / "metadata.csv")
    files = [data / "flickr8k_100" / row["file"] for row in found]
    return Rows(files, [row["file"] for row in found], [[row[f"caption_{n}"] for n in range(1, 6)] for row in found])


def birds(data: Path) -> Rows:
    found = [row for row in _table(data / "chilean_birds" / "metadata.csv") if row["kind"] == "photo"]
    files = [data / "chilean_birds" / row["file"] for row in found]
    names = [row["english_name"] for row in found]
    return Rows(files, names, [[f"a photo of a {name}"] for name in names])


def titles(_: Path) -> Rows:
    folder = sample.photos()
    found = [row for row in _table(folder / "metadata.csv") if row["title"]]
    name = "file_name" if "file_name" in found[0] else "file"
    files = [folder / Path(row[name]).name for row in found]
    return Rows(files, [row["title"] for row in found], [[row["title"]] for row in found])


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SETS = {"Flickr8k": flickr, "birds": birds, "sample titles": titles}


def told(name: str, rows: Rows, encoder: Encoder) -> Told:
    pictures = [encoder.read(open_picture(file.read_bytes(), encoder.min_side).image) for file in rows.files]
    at = range(0, len(pictures), encoder.batch)
    images = np.concatenate([encoder.encode_pixels(np.stack(pictures[start : start + encoder.batch])) for start in at])
    texts = encoder.encode_texts([caption for captions in rows.captions for caption in captions])
    of = np.repeat(np.arange(len(images)), [len(captions) for captions in rows.captions])
    return Told(name, images, texts, of, rows.shown)


def sets(data: Path) -> Iterator[Told]:
    encoder: Encoder = rooms.load("encoders", "starter")
    for name, rows in SETS.items():
        try:
            yield told(name, rows(data), encoder)
        except FileNotFoundError as missing:
            say(f"{name} is left out: there is no {missing.filename}")


def folds(one: Told) -> NDArray[np.int64]:
    """The fold of each image, (m,); images that show the same are in the same."""
    shown = sorted(set(one.shown))
    drawn = dict(zip(shown, np.random.default_rng(0).permutation(len(shown)) % FOLDS, strict=True))
    return np.array([drawn[each] for each in one.shown])


def pairs(every: list[Told], fold: int) -> Pairs:
    """What may be learned from when a fold is left out, of all sets."""
    texts, images, of, start = [], [], [], 0
    for one in every:
        kept = folds(one) != fold  # (m,)
        place = np.cumsum(kept) - 1 + start
        learned = kept[one.of]
        texts.append(one.texts[learned])
        images.append(one.images[kept])
        of.append(place[one.of[learned]])
        start += int(kept.sum())
    return Pairs(np.concatenate(texts), np.concatenate(images), np.concatenate(of))


def quari(known: Pairs, recipe: TrainingSettings, fold: int) -> Scoring:
    from eyespot.adapters.quari.training.loop import train

    learned, held_out = known.split(0.1, 100, fold)
    semi = mine(known.images, None, lambda rows: rooms.load("indexes", "exact", rows), Mining())
    with tempfile.TemporaryDirectory() as out:
        material = TrainingData(learned, held_out).with_semi_positives(semi)
        return adapted_by(train(material, SHAPE, replace(recipe, seed=fold), Path(out)).model)


def task_adaptation(known: Pairs, fold: int) -> Scoring:
    vectors = np.concatenate([known.images, known.texts])
    classes = np.concatenate([np.arange(len(known.images)), known.of])
    adapter = linear.train(vectors, classes, linear.LinearRecipe(width=SHAPE.embedding_dim, seed=fold))
    return lambda queries, gallery: frozen(adapter.apply(queries), adapter.apply(gallery))


def rankings(every: list[Told], recipe: TrainingSettings) -> Iterator[tuple[str, str, Any, Any]]:
    """Set, method, {query: ranking} and {query: grades}, fold by fold."""
    for fold in range(FOLDS):
        known = pairs(every, fold)
        methods = {"QuARI": quari(known, recipe, fold), "frozen": frozen, "TA": task_adaptation(known, fold)}
        say(f"fold {fold + 1} of {FOLDS}: {len(known.texts)} pairs")
        for one in every:
            asked = np.flatnonzero((folds(one) == fold)[one.of])  # texts
            shown = np.array(one.shown)
            right = {f"{at}": dict.fromkeys(np.flatnonzero(shown == shown[one.of[at]]).astype(str), 1) for at in asked}
            for method, scoring in methods.items():
                best = np.argsort(-scoring(one.texts[asked], one.images), axis=1, kind="stable")
                yield (
                    one.name,
                    method,
                    {f"{at}": rows.astype(str).tolist() for at, rows in zip(asked, best, strict=True)},
                    right,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one epoch")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the sets")
    options = parser.parse_args()
    every = list(sets(options.data))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    grades: dict[str, dict[str, Any]] = {}
    for name, method, run, right in rankings(every, replace(RECIPE, epochs=1) if options.quick else RECIPE):
        found.setdefault(name, {}).setdefault(method, {}).update(run)
        grades.setdefault(name, {}).update(right)
    for name, methods in found.items():
        scores = {each: evaluate(Run.from_orders(run), Qrels(grades[name]), ["RR"]) for each, run in methods.items()}
        for pair in compare(scores).pairs:
            show(replace(result_of(pair, name), goal=None), options)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('torch')}")
        sys.exit(4)
