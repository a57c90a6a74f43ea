"""How many photos somebody labels until 95 % of the relevant ones are found: in plain order, and likely ones first.

Two worlds: made-up vectors of 4,000 photos in clusters, of which a few are what is looked for while the words point
only roughly at them; and the sample photos, each category searched by its name with the built-in encoder. In both the
labeller starts in the order of the search and learns after every 20 marks; a search finds a query hard if its order
takes more than twice as many photos as are relevant. ratio = photos likely first / photos in
plain order, the median over queries.

    python bench/active_order.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.annotate.active import likely_first
from eyespot.types import Vectors

RECALL, AT_ONCE = 0.95, 20


@dataclass(frozen=True)
class Result:
    """One line of the answer; ratio = ours / peer, smaller is better."""

    name: str
    ratio: float
    peer: str
    p10: float
    p90: float
    n: int
    goal: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


@dataclass(frozen=True)
class World:
    """Photos in the order of a search: their vectors (photos, dim) and which are relevant (photos,)."""

    vectors: Vectors
    relevant: NDArray[np.bool_]

    @classmethod
    def ranked(cls, vectors: Vectors, relevant: NDArray[np.bool_], words: NDArray[np.floating]) -> World:
        """The photos in the order of their likeness to the words."""
        order = np.argsort(-(vectors @ words), kind="stable")
        return cls(vectors[order], relevant[order])

    @property
    def needed(self) -> int:
        """How many relevant photos are 95 %."""
        return int(np.ceil(RECALL * self.relevant.sum()))


def in_order(world: World) -> int:
    """Photos until 95 % are found in the order of the search."""
    return int(np.searchsorted(np.cumsum(world.relevant), world.needed)) + 1


def likely(world: World) -> int:
    """Photos until 95 % are found where the likely ones come first."""
    labels: list[bool | None] = [None] * len(world.relevant)
    found = seen = 0
    while True:
        for row in likely_first(world.vectors, labels)[:AT_ONCE].tolist():
            labels[row] = bool(world.relevant[row])
            found, seen = found + int(world.relevant[row]), seen + 1
            if found >= world.needed:
                return seen


# -- worlds -----------------------------------------------------------------------------------------------------------


def clustered(seed: int, photos: int = 4000, dim: int = 128) -> World:
    """A hundred clusters, of which one to three are relevant; the words point between them and something else."""
    rng = np.random.default_rng(seed)
    centres = _unit(rng.normal(size=(100, dim)))
    of = rng.integers(0, 100, photos)
    vectors = _unit(centres[of] + rng.normal(size=(photos, dim)) * 1.1 / np.sqrt(dim))
    wanted = rng.choice(100, rng.integers(1, 4), replace=False)
    words = centres[wanted].mean(axis=0) + rng.normal(size=dim) * rng.uniform(0.5, 1.5) / np.sqrt(dim)
    return World.ranked(vectors.astype(np.float32), np.isin(of, wanted), words)


def of_the_sample() -> list[World]:
    """The sample photos searched for each category by its name; those with fewer than five photos left out."""
    import tempfile

    import eyespot
    from eyespot import rooms, sample
    from eyespot.gallery.indexing import Options, index

    with tempfile.TemporaryDirectory(prefix="eyespot-bench-") as folder:
        encoder = rooms.load("encoders", "starter")
        index(Path(folder) / "gallery", [str(sample.photos())], [encoder], Options())
        view = eyespot.open(Path(folder) / "gallery").view
        vectors = np.concatenate(view.blocks)
        kinds = np.array([str(one["category"]) for one in view.facts(range(len(vectors)))])
    names = [name for name in sorted(set(kinds.tolist())) if (kinds == name).sum() >= 5]
    words = encoder.encode_texts([name.replace("_", " ").split("/")[-1] for name in names])
    return [World.ranked(vectors, kinds == name, row) for name, row in zip(names, words, strict=True)]


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    made: NDArray[np.floating] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return made


def results(queries: int) -> Iterator[Result]:
    """One line for each world."""
    worlds = [clustered(100 + seed) for seed in range(queries)]
    yield _measured("made-up clusters", worlds, 1.0)
    hard = [world for world in worlds if in_order(world) > 2 * world.needed]
    yield _measured("those of them that the search finds hard", hard, 0.5)
    yield _measured("sample photos by category", of_the_sample(), 1.0)


def _measured(name: str, worlds: Sequence[World], goal: float) -> Result:
    ratios = [likely(world) / in_order(world) for world in worlds]
    p10, middle, p90 = np.percentile(ratios, [10, 50, 90]).tolist()
    return Result(f"photos to 95 % recall: {name}", middle, "order of the search", p10, p90, len(ratios), goal)


def main() -> int:
    """Print the results; 4 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line per result")
    asked = parser.parse_args()
    met = True
    for result in results(6 if asked.quick else 60):
        met &= result.met
        spread = f"{result.ratio:.2f} ({result.p10:.2f} to {result.p90:.2f}) of {result.peer}, {result.n} queries"
        print(json.dumps(asdict(result)) if asked.json else f"{result.name}: {spread}", flush=True)
    return 0 if met else 4


if __name__ == "__main__":
    sys.exit(main())
