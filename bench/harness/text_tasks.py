"""43 text tasks over real photos: what a text means, by the labels of four sets.

Chilean birds (photos), Flickr8k's hundred sample images, open wildlife and the sample photos. A task is a name that at
least six photos bear: the last word of English bird names, the order of a bird in plain words, a category, a word of
titles, a thing that two of the five captions name. Photos whose labels do not say whether they show it have no part:
the things in captions are searched among Flickr8k's photos. Sets that are missing are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.harness.command import say
from bench.harness.data import Floats, metadata
from eyespot import sample
from eyespot.photos.pictures import open_picture
from eyespot.types import Encoder

Row = dict[str, str]
LEAST = 6  # photos of a task
FOLDERS = {"birds": "chilean_birds", "Flickr8k": "flickr8k_100", "wildlife": "open_wildlife"}

BIRDS = ("finch", "duck", "goose", "tyrant", "gull", "penguin", "tern", "cinclodes", "swallow", "hawk")
ORDERS = {
    "Charadriiformes": "a gull, tern or wader",
    "Passeriformes": "a songbird",
    "Anseriformes": "a duck, goose or swan",
    "Accipitriformes": "a hawk or an eagle",
    "Pelecaniformes": "a heron, an ibis or a pelican",
    "Falconiformes": "a falcon",
    "Columbiformes": "a dove",
    "Suliformes": "a cormorant or a booby",
    "Procellariiformes": "a petrel or an albatross",
    "Gruiformes": "a rail or a coot",
}
CATEGORIES = {
    "monuments": "a monument",
    "categorization/tools": "a tool",
    "categorization/renewable": "renewable energy",
    "categorization/fishes": "a fish",
    "world_animals": "a wild animal",
    "farm_animals": "a farm animal",
}
TITLES = {"windmill": "a windmill", "hammer": "a hammer", "solar|solair": "a device that uses the sun"}
THINGS = ("dog", "boy", "man", "water", "girl", "people", "woman", "beach", "snow", "toy", "field")
WILD = {
    "a photo of a camera trap": ("category", "camera trap"),
    "moths on a sheet": ("category", "insect trap"),
    "a heron": ("title", "Ardea"),
}


class Photos(NamedTuple):
    """Photos of all sets with the name of their set and their labels."""

    files: list[Path]
    sets: list[str]
    labels: list[Row]


class TextTask(NamedTuple):
    """What is searched, of which set its photos are, which photos show it, and among which it is searched, (m,)."""

    text: str
    name: str
    relevant: NDArray[np.bool_]
    among: NDArray[np.bool_]


def task_photos(data: Path) -> Photos:
    """The photos of the sets that are there."""
    made = Photos([], [], [])
    folders = {name: data / folder for name, folder in FOLDERS.items()} | {"sample": sample.photos()}
    for name, folder in folders.items():
        if not folder.exists():
            say(f"{name} is left out: {folder} is missing")
            continue
        for row in metadata(folder):
            if row.get("kind", "photo") == "photo":
                made.files.append(folder / (row.get("file") or row["file_name"]))
                made.sets.append(name)
                made.labels.append(row)
    return made


def tasks(of: Photos) -> list[TextTask]:
    """The tasks that at least six of these photos fit."""
    sets = np.array(of.sets)
    made = []
    for name, text, holds in _questions():
        inside = np.array([one == name and holds(row) for one, row in zip(of.sets, of.labels, strict=True)])
        among = sets == name if name == "Flickr8k" else sets != "Flickr8k"
        made.append(TextTask(text, name, inside, among))
    return [task for task in made if task.relevant.sum() >= LEAST]


def photo_vectors(of: Photos, encoder: Encoder) -> Floats:
    """Their unit vectors, (m, dim)."""
    rows = []
    for start in range(0, len(of.files), encoder.batch):
        some = of.files[start : start + encoder.batch]
        pixels = [encoder.read(open_picture(file.read_bytes(), encoder.min_side).image) for file in some]
        rows.append(encoder.encode_pixels(np.stack(pixels)))
    return np.concatenate(rows)


def _questions() -> Iterator[tuple[str, str, Callable[[Row], bool]]]:
    """Set, text, and whether a row of labels fits."""
    for bird in BIRDS:
        yield "birds", f"a {bird}", partial(_is_bird, bird)
    for order, text in ORDERS.items():
        yield "birds", text, partial(_holds, "order", f"^{order}")
    for part, text in CATEGORIES.items():
        yield "sample", text, partial(_holds, "category", part)
    for word, text in TITLES.items():
        yield "sample", text, partial(_holds, "title", word)
    for thing in THINGS:
        yield "Flickr8k", thing, partial(_is_named, thing)
    for text, (column, value) in WILD.items():
        yield "wildlife", text, partial(_holds, column, f"^{value}$")


def _holds(column: str, pattern: str, row: Row) -> bool:
    return re.search(pattern, row[column], re.IGNORECASE) is not None


def _is_bird(bird: str, row: Row) -> bool:
    """Whether the English name ends with this word."""
    return re.sub("[^a-z]", "", re.split("[ -]", row["english_name"].strip(" ."))[-1].lower()) == bird


def _is_named(thing: str, row: Row) -> bool:
    """Whether two captions name it, in singular or plural."""
    captions = [re.findall("[a-z]+", row[f"caption_{at}"].lower()) for at in range(1, 6)]
    return sum(thing in words or f"{thing}s" in words for words in captions) > 1
