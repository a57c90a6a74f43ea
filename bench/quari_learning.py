"""Learning that is real: a trained QuARI against the frozen space, two static adapters and its own ablations.

A world with a planted subspace for every query. A vector has four aspects of four dimensions each; a picture has some
content in every aspect, and a query means one aspect, the one that it is loudest in: what it says in the others is
random. Relevant are the pictures with the query's content in that aspect. Texts and pictures lie apart by an offset of
their own (the modality gap); training sees texts only, tests ask by texts and by pictures, for contents of which no
training pair has any. A world and a training for each seed; paired tests over all queries of all seeds, corrected by
Holm's method. Exit code 4 if QuARI does not beat the frozen space and both static adapters.

    python bench/quari_learning.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters import linear
from eyespot.adapters.quari import Config, load
from eyespot.adapters.quari.mining import Mining, mine
from eyespot.adapters.quari.training import ABLATIONS, Pairs, TrainingData, TrainingSettings, ablated
from eyespot.extras import install_line
from eyespot.metrics import compare, evaluate
from eyespot.types import Qrels, Run

Vectors = NDArray[np.float32]
Choice = NDArray[np.int64]

ASPECTS, WIDE = 4, 4
DIM = ASPECTS * WIDE
CONTENTS = 64  # of each aspect in the gallery; no picture or caption of the training has any of them
PICTURES, GALLERY = 12_000, 4_000
LOUD, OFFSET, NOISE = 2.5, 0.5, 0.1
MEASURE, DEPTH = "AP@100", 100
SHAPE = Config(DIM, low_rank_dim=4, hidden_dim=64, num_steps=2, nhead=4, num_layers=1, dropout=0.0)
RECIPE = TrainingSettings(
    batch=64,
    accumulate=1,
    epochs=6,
    rate=3e-3,
    noise=0.05,
    token_drop=0.0,
    validate_every=100,
    patience=0,
    device="cpu",
)
STATIC, GOALS = ("frozen", "TA", "static maps"), ("text to image",)  # what is trained; by pictures it is only told


@dataclass(frozen=True)
class Result:
    """One line of the answer: QuARI against a peer on the same queries."""

    peer: str
    task: str
    mean: float
    peer_mean: float
    moved: tuple[float, float, float, float]  # in favour of QuARI: mean difference, its 95% interval, corrected p
    n: int
    goal: str | None

    @property
    def met(self) -> bool:
        """Whether the difference is surely on the side it should be on."""
        return self.goal is None or (self.moved[0] > 0 and self.moved[3] < 0.05)


def unit(rows: Any) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


class World:
    """Pictures, captions and test queries, all drawn from one seed."""

    def __init__(self, seed: int, pictures: int) -> None:
        self.rng, self.pictures = np.random.default_rng(seed), pictures
        self.turn = np.linalg.qr(self.rng.normal(size=(DIM, DIM)))[0].reshape(ASPECTS, WIDE, DIM)
        self.text_offset, self.picture_offset = OFFSET * unit(self.rng.normal(size=(2, DIM)))

    def contents(self, *shape: int) -> Vectors:
        """Directions, (*shape, wide)."""
        return unit(self.rng.normal(size=(*shape, WIDE)))

    def vectors(self, parts: Vectors, loud: Choice | None, offset: Vectors) -> Vectors:
        """(n, dim) from what is in each aspect (n, aspects, wide): one louder than the others, noise and an offset."""
        heard = parts + NOISE * self.rng.normal(size=parts.shape)
        if loud is not None:
            heard[np.arange(len(parts)), loud] *= LOUD
        return unit(unit(np.einsum("naw,awd->nd", heard, self.turn)) + offset)

    @cached_property
    def pairs(self) -> Pairs:
        """A caption has its picture's content in the aspect that it means, and elsewhere anything."""
        rows, loud = np.arange(self.pictures), self.rng.integers(0, ASPECTS, self.pictures)
        shown, said = self.contents(self.pictures, ASPECTS), self.contents(self.pictures, ASPECTS)
        said[rows, loud] = shown[rows, loud]
        return Pairs(self.vectors(said, loud, self.text_offset), self.vectors(shown, None, self.picture_offset), rows)

    @cached_property
    def test(self) -> Test:
        """A text and a picture for each content of each aspect, and a gallery that mixes these contents."""
        contents, chosen = self.contents(ASPECTS, CONTENTS), self.rng.integers(0, CONTENTS, (GALLERY, ASPECTS))
        gallery = self.vectors(contents[np.arange(ASPECTS), chosen], None, self.picture_offset)
        loud, content = (one.ravel() for one in np.mgrid[:ASPECTS, :CONTENTS])
        said = self.contents(len(loud), ASPECTS)
        said[np.arange(len(loud)), loud] = contents[loud, content]
        offsets = {"text to image": self.text_offset, "image to image": self.picture_offset}
        queries = {task: self.vectors(said, loud, offset) for task, offset in offsets.items()}
        return Test(queries, gallery, content[:, None] == chosen[:, loud].T)


@dataclass(frozen=True)
class Test:
    """Queries (q, dim) by task, the gallery (g, dim), and which pictures are relevant, (q, g)."""

    queries: Mapping[str, Vectors]
    gallery: Vectors
    relevant: NDArray[np.bool_]


Scoring = Callable[[Vectors, Vectors], NDArray[Any]]  # queries, gallery → (q, g)


def frozen(queries: Vectors, gallery: Vectors) -> NDArray[Any]:
    return np.asarray(queries @ gallery.T)


def adapted_by(place: Path) -> Scoring:
    """The served checkpoint, in numpy, by the dense formula."""
    adapter = load(place)

    def scores(queries: Vectors, gallery: Vectors) -> NDArray[Any]:
        return np.stack([_cosines(view, gallery) for view in adapter.adapt(queries)])

    return scores


def _cosines(view: Any, gallery: Vectors) -> NDArray[Any]:
    mapped = view.identity * gallery + (gallery @ view.left) @ view.right.T
    return np.asarray(mapped @ view.query / np.maximum(np.linalg.norm(mapped, axis=1), 1e-12))


def task_adaptation(world: World, seed: int) -> Scoring:
    """TA: a classifier of images, every image with its texts a class."""
    pairs = world.pairs
    vectors = np.concatenate([pairs.images, pairs.texts])
    classes = np.concatenate([np.arange(len(pairs.images)), pairs.of])
    adapter = linear.train(vectors, classes, linear.LinearRecipe(width=DIM, seed=seed))
    return lambda queries, gallery: frozen(adapter.apply(queries), adapter.apply(gallery))


def static_map(world: World, seed: int) -> Scoring:
    """The strongest static peer: full-rank maps of queries and of images, learned by QuARI's own loss."""
    import torch
    from torch.nn.functional import normalize

    from eyespot.adapters.quari.training.data import TrainingBatches
    from eyespot.adapters.quari.training.noise import noisy

    batches = TrainingBatches(TrainingData(world.pairs), RECIPE.batch, 0, seed)
    torch.manual_seed(seed)
    maps = torch.nn.ModuleList([torch.nn.Linear(DIM, DIM), torch.nn.Linear(DIM, DIM)])
    optimizer = torch.optim.AdamW(maps.parameters(), 1e-3, weight_decay=1e-2)
    for number in range(RECIPE.epochs * batches.per_epoch):
        texts, targets = batches.batch(number)
        asked = normalize(maps[0](noisy(texts, RECIPE.noise, torch.default_generator)), dim=1)
        logits = asked @ normalize(maps[1](targets.images), dim=1).T / RECIPE.temperature
        logits = logits.masked_fill(targets.hidden, -torch.inf)
        loss = -(logits.log_softmax(0).diagonal() + logits.log_softmax(1).diagonal()).mean() / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def scores(queries: Vectors, gallery: Vectors) -> NDArray[Any]:
        both = zip(maps, (queries, gallery), strict=True)
        with torch.no_grad():
            pair = [normalize(one(torch.from_numpy(rows)), dim=1) for one, rows in both]
        return np.asarray((pair[0] @ pair[1].T).numpy())

    return scores


def trained(world: World, shape: Config, recipe: TrainingSettings, seed: int) -> Scoring:
    from eyespot.adapters.quari.training.loop import train

    learned, held_out = world.pairs.split(0.04, 500, seed)
    semi = None
    if recipe.semi_positives:
        semi = mine(world.pairs.images, None, lambda rows: rooms.load("indexes", "exact", rows), Mining())
    material = TrainingData(learned, held_out)
    material = material if semi is None else material.with_semi_positives(semi)
    with tempfile.TemporaryDirectory() as out:
        done = train(material, shape, replace(recipe, seed=seed), Path(out))
        return adapted_by(done.model)


def runs(options: Any, seed: int) -> Iterator[tuple[str, Scoring, World]]:
    """Every method with its way to score, in one world."""
    world = World(seed, PICTURES)
    recipe = replace(RECIPE, epochs=options.epochs)
    yield "frozen", frozen, world
    yield "TA", task_adaptation(world, seed), world
    yield "static maps", static_map(world, seed), world
    yield "QuARI", trained(world, SHAPE, recipe, seed), world
    for name in ABLATIONS:
        yield f"QuARI, {name}", trained(world, *ablated(SHAPE, recipe, name), seed), world


def judged(options: Any) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, int]]]:
    """{task: {method: {query: ranking}}} over all seeds, and the judgements of all queries."""
    rankings: dict[str, dict[str, Any]] = {}
    grades: dict[str, dict[str, int]] = {}
    for seed in range(1 if options.quick else options.seeds):
        for method, scoring, world in runs(options, seed):
            started = time.perf_counter()
            test = world.test
            names = np.array([f"{seed}/{row}" for row in range(GALLERY)])
            for at, relevant in enumerate(test.relevant):
                grades[f"{seed}/{at}"] = dict.fromkeys(names[relevant].tolist(), 1)
            for task, queries in test.queries.items():
                best = np.argsort(-scoring(queries, test.gallery), axis=1, kind="stable")[:, :DEPTH]
                found = {f"{seed}/{at}": names[rows].tolist() for at, rows in enumerate(best)}
                rankings.setdefault(task, {}).setdefault(method, {}).update(found)
            say(f"seed {seed}: {method} ({time.perf_counter() - started:.0f} s to score)")
    return rankings, grades


def results(options: Any) -> Iterator[Result]:
    rankings, grades = judged(options)
    qrels = Qrels(grades)
    for task, methods in rankings.items():
        orders = {"QuARI": methods.pop("QuARI"), **methods}
        comparison = compare(
            {name: evaluate(Run.from_orders(found), qrels, [MEASURE]) for name, found in orders.items()}
        )
        yield from (result_of(pair, task) for pair in comparison.pairs)


def result_of(pair: Any, task: str) -> Result:
    low, high = pair.interval
    goal = "better" if pair.run in STATIC and task in GOALS else None
    moved = -pair.difference, -high, -low, pair.corrected_p
    return Result(
        pair.run, task, float(np.mean(pair.before)), float(np.mean(pair.after)), moved, len(pair.queries), goal
    )


def show(result: Result, options: Any) -> None:
    if options.json:
        print(json.dumps(asdict(result) | {"met": result.met}), flush=True)
        return
    verdict = "" if result.goal is None else ("  goal met" if result.met else "  GOAL MISSED")
    difference, low, high, p = result.moved
    print(
        f"{result.task:<15} QuARI {result.mean:.3f}  against {result.peer:<25} {result.peer_mean:.3f}  "
        f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]  p {p:.4f}  n {result.n}{verdict}",
        flush=True,
    )


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--seeds", type=int, default=3, help="worlds and trainings")
    parser.add_argument("--epochs", type=int, default=RECIPE.epochs, help="of each training")
    options = parser.parse_args()
    met = True
    for result in results(options):
        show(result, options)
        met &= result.met
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('torch')}")
        sys.exit(4)
