"""What an approximate answer says of its own recall, less what it is: image and word queries, 12 adverse filters.

A made-up gallery of 200,000 vectors (--quick: 20,000) in clusters, whose word queries lie beside the clusters by a
common offset; and the photos of a folder `shared` next to the checkout with words and photos through the built-in
encoder, copied with noise until there are 20,000 rows. `pq` and `rabitq` as `eyespot tune` uses them at 0.99, with the
depth that finds it for the image queries. Each filter is made of the true order of one query. The goal: the mean stated
recall is at most two points above the mean true one, in every case; a time is beside certified search under the same
filters, CPU time on one thread.

    python bench/recall.py [--quick] [--json] [--only made|photos]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import Command, Floats, Measurement, clusters, say, shared, timed, vectors_on_disk
from eyespot import rooms
from eyespot.indexes import faiss
from eyespot.indexes.exact import Exact, load, quantise

Mask = NDArray[np.bool_]
Filter = Callable[[Floats, Floats, np.random.Generator], Mask]  # scores, those of the nearest row, chance

K, PROMISE, MADE, QUERIES = 50, 0.99, 256, 30
DEPTHS = (100, 200, 400, 800, 1600, 3200, 6400)


# -- the filters ----------------------------------------------------------------------------------------------------


def without(share: float) -> Filter:
    """All but the rows that are nearest to the query."""
    return lambda scores, _near, _rng: ranks(scores) >= share * len(scores)


def without_clusters(share: float) -> Filter:
    """All but the rows that are nearest to the nearest row: its cluster, and those beside it."""
    return lambda _scores, near, _rng: ranks(near) >= share * len(near)


def ranks(scores: Floats) -> NDArray[np.int64]:
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores)] = np.arange(len(scores))
    return places


def band(low: float, high: float) -> Filter:
    """The rows between two ranks."""
    return lambda scores, _near, _rng: (ranks(scores) >= low * len(scores)) & (ranks(scores) < high * len(scores))


FILTERS: dict[str, Filter] = {
    "half at random": lambda scores, _near, rng: rng.random(len(scores)) < 0.5,
    "a tenth at random": lambda scores, _near, rng: rng.random(len(scores)) < 0.1,
    "without the nearest 0.1 %": without(0.001),
    "without the nearest 1 %": without(0.01),
    "without the nearest 10 %": without(0.1),
    "the farthest half": without(0.5),
    "the farthest tenth": without(0.9),
    "without the nearest 1 % of clusters": without_clusters(0.01),
    "without the nearest 5 % of clusters": without_clusters(0.05),
    "without the nearest 20 % of clusters": without_clusters(0.2),
    "ranks from 5 to 40 %": band(0.05, 0.4),
    "the nearer, the rarer": lambda scores, _near, rng: rng.random(len(scores)) < ranks(scores) / len(scores),
}


# -- the galleries --------------------------------------------------------------------------------------------------


class World(NamedTuple):
    """A gallery, and queries of two kinds."""

    name: str
    vectors: Floats
    queries: dict[str, Floats]


def made(options: Namespace) -> World:
    """Clusters; words lie elsewhere, as in the spaces of two towers."""
    rows = 20_000 if options.quick else 200_000
    world, rng = clusters(rows // 40, MADE), np.random.default_rng(3)
    vectors = vectors_on_disk(world, options.folder / "made.npy", rows)
    offset = 0.8 * unit(rng.standard_normal((1, MADE)))
    words = unit(world.draw(QUERIES, noise=1.2) + offset)
    return World("made", vectors, {"image": world.draw(QUERIES, noise=0.75), "word": words})


def photos(_options: Namespace) -> World:
    """Real photos, some held out as queries; the others again and again with noise, which leaves their clusters."""
    from PIL import Image

    from eyespot.encoders.starter import DATA

    places = sorted(shared("data").rglob("*.jpg"))[:800]
    encoder, rng = rooms.load("encoders", "starter"), np.random.default_rng(4)
    pixels = [encoder.read(Image.open(place)) for place in places]
    real = np.concatenate([encoder.encode_pixels(pixels[start : start + 32]) for start in range(0, len(pixels), 32)])
    held, rest = real[:: len(real) // QUERIES][:QUERIES], np.delete(real, slice(None, None, len(real) // QUERIES), 0)
    noise = rng.standard_normal((20_000, real.shape[1])) * 0.5 / real.shape[1] ** 0.5
    vectors = unit(rest[rng.integers(0, len(rest), 20_000)] + noise)
    names = rng.choice((DATA / "classes.txt").read_text(encoding="utf-8").splitlines(), QUERIES, replace=False)
    say(f"{len(real)} photos")
    return World("photos", vectors, {"image": held, "word": encoder.encode_texts(names.tolist())})


def unit(rows: Any) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


# -- what is measured -----------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One kind of index over a world, and what each answer states, holds and takes."""

    world: World
    kind: str
    exact: Exact

    def measurements(self, folder: Path) -> Iterator[Measurement]:
        index = self._index(folder / f"{self.world.name}-{self.kind}")
        for kind, queries in self.world.queries.items():
            for name, make in {"no filter": None, **FILTERS}.items():
                trials = np.array([self._trial(index, query, make, at) for at, query in enumerate(queries)])
                stated, true, seconds, certified = trials.mean(axis=0)
                label = f"{self.world.name}, {self.kind}, {kind} queries, {name}"
                fallen = (trials[:, 0] == 1).mean()
                costs = f"{seconds / certified:.2f} of certified search, {fallen:.0%} answered exactly"
                say(f"{label}: states {stated:.3f}, finds {true:.3f}; {costs}")
                yield Measurement.from_mean(f"{label}: stated less true recall", [stated - true], "exact", 0.02)

    def _index(self, folder: Path) -> Any:
        """With the least depth that finds what is promised without help."""
        queries = self.world.queries["image"]
        floors = self.exact.search(queries, K).scores[:, -1:] - 1e-6
        for depth in DEPTHS:
            use: dict[str, Any] = {"depth": depth, "recall": PROMISE, "exact": lambda: self.exact}
            plain = faiss.load([self.world.vectors], folder=folder, kind=self.kind, **use)
            if (plain.search(queries, K).scores >= floors).mean() >= PROMISE:
                break
        say(f"{self.world.name}, {self.kind}: depth {depth}")
        return faiss.load([self.world.vectors], folder=folder, promise=PROMISE, **use)

    def _trial(self, index: Any, query: Floats, make: Filter | None, at: int) -> tuple[float, float, float, float]:
        mask = None
        if make is not None:
            scores = np.asarray(self.world.vectors @ query)
            mask = make(scores, np.asarray(self.world.vectors @ self.world.vectors[scores.argmax()]), seeded(at))
        certified, true = timed(lambda: self.exact.search(query[None], K, mask))
        seconds, found = timed(lambda: index.search(query[None], K, mask))
        held = (found.scores[0] >= true.scores[0, -1] - 1e-6).mean()
        return 1.0 if found.recall is None else found.recall, float(held), seconds, certified


def seeded(at: int) -> np.random.Generator:
    return np.random.default_rng(100 + at)


def measurements(options: Namespace) -> Iterator[Measurement]:
    for name, world in {"made": made, "photos": photos}.items():
        if options.only in (None, name):
            gallery = world(options)
            exact = load([gallery.vectors], codes=[quantise(gallery.vectors, threads=1)], threads=1, small=0)
            for kind in ("pq", "rabitq"):
                yield from Case(gallery, kind, exact).measurements(options.folder)


if __name__ == "__main__":
    command = Command(__doc__, fast=True, threads=1)
    command.add_argument("--only", choices=("made", "photos"), help="one of the two galleries")
    command.run(measurements)
