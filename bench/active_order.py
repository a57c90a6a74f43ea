"""How many photos somebody labels until 95 % of the relevant ones are found: in plain order, and likely ones first.

Two worlds: made-up vectors of 4,000 photos in clusters, a few of them relevant, while the words point only roughly at
them; and the sample photos, each category searched by its name with the built-in encoder. In both the labeller starts
in the order of the search, which is updated after every 20 marks. A query is hard if the order of the search takes more
than twice as many photos as are needed. A ratio is photos likely first over photos in plain order.

    python bench/active_order.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import Command, Measurement
from eyespot.curate.annotate.active import likely_first
from eyespot.types import Vectors

RECALL, MARKS = 0.95, 20  # marks between two updates of the order


@dataclass(frozen=True)
class World:
    """Photos in the order of a search: their vectors, (photos, dim), and which are relevant, (photos,)."""

    vectors: Vectors
    relevant: NDArray[np.bool_]

    @classmethod
    def ranked(cls, vectors: Vectors, relevant: NDArray[np.bool_], words: NDArray[np.floating]) -> World:
        """The photos in the order of their similarity to the words."""
        order = np.argsort(-(vectors @ words), kind="stable")
        return cls(vectors[order], relevant[order])

    @property
    def needed(self) -> int:
        """How many relevant photos are 95 %."""
        return int(np.ceil(RECALL * self.relevant.sum()))


def in_order(world: World) -> int:
    """Photos until 95 % are found, in the order of the search."""
    return int(np.searchsorted(np.cumsum(world.relevant), world.needed)) + 1


def likely(world: World) -> int:
    """Photos until 95 % are found, where the likely ones come first."""
    labels: list[bool | None] = [None] * len(world.relevant)
    relevant = seen = 0
    while True:
        for row in likely_first(world.vectors, labels)[:MARKS].tolist():
            labels[row] = bool(world.relevant[row])
            relevant, seen = relevant + int(world.relevant[row]), seen + 1
            if relevant >= world.needed:
                return seen


# -- worlds -----------------------------------------------------------------------------------------------------------


def clustered(seed: int, photos: int = 4000, dim: int = 128) -> World:
    """A hundred clusters, one to three of them relevant; the words are their mean plus noise."""
    rng = np.random.default_rng(seed)
    centres = _unit(rng.normal(size=(100, dim)))
    cluster = rng.integers(0, 100, photos)
    vectors = _unit(centres[cluster] + rng.normal(size=(photos, dim)) * 1.1 / np.sqrt(dim))
    targets = rng.choice(100, rng.integers(1, 4), replace=False)
    words = centres[targets].mean(axis=0) + rng.normal(size=dim) * rng.uniform(0.5, 1.5) / np.sqrt(dim)
    return World.ranked(vectors.astype(np.float32), np.isin(cluster, targets), words)


def of_the_sample(folder: Path) -> list[World]:
    """The sample photos searched for each category by its name, without categories of fewer than five photos."""
    import eyespot
    from eyespot import rooms, sample
    from eyespot.gallery.indexing import Options, index

    encoder = rooms.load("encoders", "starter")
    index(folder, [str(sample.photos())], [encoder], Options())
    view = eyespot.open(folder).view
    vectors = np.concatenate(view.blocks)
    kinds = np.array([str(facts["category"]) for facts in view.facts(range(len(vectors)))])
    names = [name for name in sorted(set(kinds.tolist())) if (kinds == name).sum() >= 5]
    words = encoder.encode_texts([name.replace("_", " ").split("/")[-1] for name in names])
    return [World.ranked(vectors, kinds == name, row) for name, row in zip(names, words, strict=True)]


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def measurements(options: Namespace) -> Iterator[Measurement]:
    worlds = [clustered(100 + seed) for seed in range(6 if options.quick else 60)]
    yield measured("made-up clusters", worlds, 1.0)
    hard = [world for world in worlds if in_order(world) > 2 * world.needed]
    yield measured("those of them that the search finds hard", hard, 0.5)
    yield measured("sample photos by category", of_the_sample(options.folder / "gallery"), 1.0)


def measured(name: str, worlds: Sequence[World], goal: float) -> Measurement:
    ratios = [likely(world) / in_order(world) for world in worlds]
    return Measurement.from_trials(f"photos to 95 % recall: {name}", ratios, "order of the search", goal)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the made-up queries").run(measurements)
