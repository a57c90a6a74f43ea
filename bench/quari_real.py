"""QuARI on few real pairs: what it learns from some hundred captioned photos, against the frozen space and TA.

Captions of Flickr8k's hundred sample images, the English names of Chilean birds, and the titles of the sample photos,
in the vectors of `starter`. The images of each set are divided into folds. A model trained on the other folds of all
sets ranks all images of a set for the captions of the fold left out. The measure is RR of the caption's own image, for
birds of the first photo of the species; paired sign-flip tests over all queries, Holm's correction. Sets that are
missing are left out.

QuARI is what `eyespot train quari` names: a model that is significantly better than the frozen space on the images it
holds out, else none, and then the search is plain. "QuARI, kept anyway" is the trained model in any case. A ratio is
the peer's mean RR over that of QuARI. The goal is that the frozen space is never better than QuARI by more than the
interval.

    python bench/quari_real.py [--quick] [--json] [--data DIR] [--preset NAME] [--rate R]
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import SHARED, Command, Floats, Measurement, metadata, say
from bench.quari_learning import NoHarm, Scoring, adapted_by, frozen, leads
from eyespot import rooms, sample
from eyespot.adapters import linear
from eyespot.adapters.quari import Config
from eyespot.adapters.quari.mining import Mining, mine
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings, preset
from eyespot.photos.pictures import open_picture
from eyespot.search import paired_gain
from eyespot.types import Encoder, Qrels

FOLDS = 5
SHAPE = Config(512, low_rank_dim=8, hidden_dim=128, num_steps=2, nhead=4, num_layers=2)
# What so few pairs fill
FITTED: dict[str, Any] = {"batch": 64, "accumulate": 1, "epochs": 10, "device": "cpu", "keep_anyway": True}
HELD_OUT = 0.2  # of the images that are not in the fold


class EmbeddedSet(NamedTuple):
    """One set: its images (m, dim), its texts (n, dim), the row of each text's image (n,), and what images show."""

    name: str
    images: Floats
    texts: Floats
    of: NDArray[np.int64]
    subjects: list[str]  # images with the same subject are all relevant


class CaptionedPhotos(NamedTuple):
    """The pictures of a set, their subjects, and their captions."""

    files: list[Path]
    subjects: list[str]
    captions: list[list[str]]


def flickr(data: Path) -> CaptionedPhotos:
    folder = data / "flickr8k_100"
    rows = metadata(folder)
    names = [row["file"] for row in rows]
    captions = [[row[f"caption_{n}"] for n in range(1, 6)] for row in rows]
    return CaptionedPhotos([folder / name for name in names], names, captions)


def birds(data: Path) -> CaptionedPhotos:
    folder = data / "chilean_birds"
    rows = [row for row in metadata(folder) if row["kind"] == "photo"]
    names = [row["english_name"] for row in rows]
    return CaptionedPhotos([folder / row["file"] for row in rows], names, [[f"a photo of a {name}"] for name in names])


def titles(_: Path) -> CaptionedPhotos:
    folder = sample.photos()
    rows = [row for row in metadata(folder) if row["title"]]
    column = "file_name" if "file_name" in rows[0] else "file"
    files = [folder / Path(row[column]).name for row in rows]
    return CaptionedPhotos(files, [row["title"] for row in rows], [[row["title"]] for row in rows])


SETS = {"Flickr8k": flickr, "birds": birds, "sample titles": titles}


def embedded(name: str, photos: CaptionedPhotos, encoder: Encoder) -> EmbeddedSet:
    pixels = [encoder.read(open_picture(file.read_bytes(), encoder.min_side).image) for file in photos.files]
    starts = range(0, len(pixels), encoder.batch)
    images = [encoder.encode_pixels(np.stack(pixels[start : start + encoder.batch])) for start in starts]
    texts = encoder.encode_texts([caption for captions in photos.captions for caption in captions])
    of = np.repeat(np.arange(len(pixels)), [len(captions) for captions in photos.captions])
    return EmbeddedSet(name, np.concatenate(images), texts, of, photos.subjects)


def embedded_sets(data: Path) -> Iterator[EmbeddedSet]:
    encoder: Encoder = rooms.load("encoders", "starter")
    for name, read in SETS.items():
        try:
            yield embedded(name, read(data), encoder)
        except FileNotFoundError as missing:
            say(f"{name} is left out: {missing.filename} is missing")


def folds(photos: EmbeddedSet) -> NDArray[np.int64]:
    """The fold of each image, (m,); images with the same subject are in the same."""
    subjects = sorted(set(photos.subjects))
    drawn = dict(zip(subjects, np.random.default_rng(0).permutation(len(subjects)) % FOLDS, strict=True))
    return np.array([drawn[subject] for subject in photos.subjects])


def pairs(sets: list[EmbeddedSet], fold: int) -> Pairs:
    """The pairs of all sets that are not in this fold."""
    texts, images, of, start = [], [], [], 0
    for photos in sets:
        training = folds(photos) != fold  # (m,)
        rows = np.cumsum(training) - 1 + start
        of_training = training[photos.of]
        texts.append(photos.texts[of_training])
        images.append(photos.images[training])
        of.append(rows[photos.of[of_training]])
        start += int(training.sum())
    return Pairs(np.concatenate(texts), np.concatenate(images), np.concatenate(of))


def quari(known: Pairs, recipe: TrainingSettings, fold: int, form: dict[str, Any]) -> dict[str, Scoring]:
    """The model that a training names, or the frozen space; and the model that it found, in any case."""
    from eyespot.adapters.quari.training.loop import train

    learned, held_out = known.split(HELD_OUT, 1000, fold)
    semi = mine(known.images, None, lambda rows: rooms.load("indexes", "exact", rows), Mining())
    with tempfile.TemporaryDirectory() as out:
        material = TrainingData(learned, held_out, test=paired_gain).with_semi_positives(semi)
        done = train(material, replace(SHAPE, **form), replace(recipe, seed=fold), Path(out))
        scoring = adapted_by(Path(out) / "model")
    ahead = done.comparison is not None and done.comparison.better and (done.best or 0) > (done.frozen or 0)
    say(
        f"fold {fold + 1}: best step {done.best_step} of {done.step}; {done.comparison}; {'named' if ahead else 'none'}"
    )
    return {"QuARI": scoring if ahead else frozen, "QuARI, kept anyway": scoring}


def task_adaptation(known: Pairs, fold: int) -> Scoring:
    vectors = np.concatenate([known.images, known.texts])
    classes = np.concatenate([np.arange(len(known.images)), known.of])
    adapter = linear.train(vectors, classes, linear.LinearRecipe(width=SHAPE.embedding_dim, seed=fold))
    return lambda queries, gallery: frozen(adapter.apply(queries), adapter.apply(gallery))


def rankings(
    sets: list[EmbeddedSet], recipe: TrainingSettings, form: dict[str, Any]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Set, method, {query: ranking} and {query: grades}, fold by fold."""
    for fold in range(FOLDS):
        known = pairs(sets, fold)
        methods = quari(known, recipe, fold, form)
        methods |= {"frozen": frozen, "TA": task_adaptation(known, fold)}
        say(f"fold {fold + 1} of {FOLDS}: {len(known.texts)} pairs")
        for photos in sets:
            texts = np.flatnonzero((folds(photos) == fold)[photos.of])
            grades = relevant(photos, texts)
            for method, scoring in methods.items():
                best = np.argsort(-scoring(photos.texts[texts], photos.images), axis=1, kind="stable")
                ranked = {f"{at}": rows.astype(str).tolist() for at, rows in zip(texts, best, strict=True)}
                yield photos.name, method, ranked, grades


def relevant(photos: EmbeddedSet, texts: NDArray[np.int64]) -> dict[str, dict[str, int]]:
    """The images with the subject of each text."""
    subjects = np.array(photos.subjects)
    rows = {f"{at}": np.flatnonzero(subjects == subjects[photos.of[at]]) for at in texts}
    return {at: dict.fromkeys(images.astype(str).tolist(), 1) for at, images in rows.items()}


def measurements(options: Namespace) -> Iterator[Measurement]:
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    grades: dict[str, dict[str, Any]] = {}
    recipe, form = preset(options.preset)
    fitted = FITTED | ({"epochs": 1} if options.quick else {}) | ({"rate": options.rate} if options.rate else {})
    for name, method, ranked, of_queries in rankings(
        list(embedded_sets(options.data)), replace(recipe, **fitted), form
    ):
        runs.setdefault(name, {}).setdefault(method, {}).update(ranked)
        grades.setdefault(name, {}).update(of_queries)
    for name, methods in runs.items():
        for lead in leads(name, methods, Qrels(grades[name]), "RR"):
            goal = lead.goal if lead.peer == "frozen" else None
            yield NoHarm(**{field.name: getattr(lead, field.name) for field in fields(lead)} | {"goal": goal})


if __name__ == "__main__":
    command = Command(__doc__, quick="one epoch")
    command.add_argument("--preset", default="identity", help="the recipe and its form")
    command.add_argument("--rate", type=float, default=None, help="the highest learning rate")
    command.add_argument("--data", type=Path, default=SHARED / "data", help="the folder of the sets")
    command.run(measurements)
