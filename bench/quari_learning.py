"""Learning that is real: a trained QuARI against the frozen space, two static adapters and its own ablations.

A world with a planted subspace for each query. A vector has four aspects of four dimensions each; a picture has some
content in each aspect, and a query means one aspect, its loudest one: what it contains in the others is random.
Relevant are the pictures with the query's content in that aspect. Texts and pictures lie apart by an offset of their
own (the modality gap); training sees texts only, tests search by texts and by pictures, for contents that no training
pair has. A world and a training for each seed; paired tests over all queries of all seeds, corrected by Holm's method.
A ratio is the peer's mean AP over QuARI's. The goal is a significant lead over the frozen space and both static
adapters, from text to image, and from the frozen space in a third of the steps no less than from a random start.

    python bench/quari_learning.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import Command, Measurement, say
from eyespot import rooms
from eyespot.adapters import linear
from eyespot.adapters.quari import Config, load
from eyespot.adapters.quari.mining import Mining, mine
from eyespot.adapters.quari.training import ABLATIONS, Pairs, TrainingData, TrainingSettings, ablated
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
SHAPE = Config(DIM, low_rank_dim=4, hidden_dim=64, num_steps=2, nhead=4, num_layers=1, dropout=0.0, use_fro_norm=False)
RECIPE = TrainingSettings(
    start="identity",
    batch=192,
    accumulate=1,
    epochs=6,
    rate=3e-3,
    noise=0.05,
    token_drop=0.0,
    validate_every=100,
    patience=0,
    device="cpu",
    keep_anyway=True,
)
SMALL_BATCH = 64  # of the random start, in three times the steps, and of the static maps
RANDOM = "QuARI, random start"
STATIC, TRAINED_TASK = ("frozen", "TA", "static maps"), "text to image"  # search by pictures has no goal


@dataclass(frozen=True, kw_only=True)
class Lead(Measurement):
    """QuARI against a peer on the same queries, with the mean difference in favour of QuARI."""

    task: str
    mean: float
    peer_mean: float
    difference: float
    interval: tuple[float, float]  # 95 %
    p: float  # corrected

    @property
    def met(self) -> bool:
        """Whether QuARI is significantly better."""
        return self.goal is None or (self.difference > 0 and self.p < 0.05)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.task:<15} QuARI {self.mean:.3f}  against {self.peer:<25} {self.peer_mean:.3f}  "
            f"{self.difference:+.3f} [{low:+.3f}, {high:+.3f}]  p {self.p:.4f}  n {self.n}{self.verdict}"
        )


@dataclass(frozen=True, kw_only=True)
class NoHarm(Lead):
    """QuARI is not behind by more than the interval."""

    @property
    def met(self) -> bool:
        """Whether the interval of the difference reaches 0."""
        return self.goal is None or self.interval[1] >= 0


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
        """(n, dim) from the content of each aspect, (n, aspects, wide): one is louder; with noise and an offset."""
        noisy = parts + NOISE * self.rng.normal(size=parts.shape)
        if loud is not None:
            noisy[np.arange(len(parts)), loud] *= LOUD
        return unit(unit(np.einsum("naw,awd->nd", noisy, self.turn)) + offset)

    @cached_property
    def pairs(self) -> Pairs:
        """A caption has its picture's content in the aspect that it means, and random content elsewhere."""
        rows, loud = np.arange(self.pictures), self.rng.integers(0, ASPECTS, self.pictures)
        pictures, texts = self.contents(self.pictures, ASPECTS), self.contents(self.pictures, ASPECTS)
        texts[rows, loud] = pictures[rows, loud]
        images = self.vectors(pictures, None, self.picture_offset)
        return Pairs(self.vectors(texts, loud, self.text_offset), images, rows)

    @cached_property
    def test_set(self) -> TestSet:
        """A text and a picture for each content of each aspect, and a gallery that mixes these contents."""
        contents, chosen = self.contents(ASPECTS, CONTENTS), self.rng.integers(0, CONTENTS, (GALLERY, ASPECTS))
        gallery = self.vectors(contents[np.arange(ASPECTS), chosen], None, self.picture_offset)
        loud, content = (axis.ravel() for axis in np.mgrid[:ASPECTS, :CONTENTS])
        parts = self.contents(len(loud), ASPECTS)
        parts[np.arange(len(loud)), loud] = contents[loud, content]
        offsets = {"text to image": self.text_offset, "image to image": self.picture_offset}
        queries = {task: self.vectors(parts, loud, offset) for task, offset in offsets.items()}
        return TestSet(queries, gallery, content[:, None] == chosen[:, loud].T)


@dataclass(frozen=True)
class TestSet:
    """Queries (q, dim) by task, the gallery (g, dim), and which pictures are relevant, (q, g)."""

    queries: Mapping[str, Vectors]
    gallery: Vectors
    relevant: NDArray[np.bool_]


Scoring = Callable[[Vectors, Vectors], NDArray[Any]]  # queries, gallery → (q, g)


def frozen(queries: Vectors, gallery: Vectors) -> NDArray[Any]:
    return np.asarray(queries @ gallery.T)


def adapted_by(path: Path) -> Scoring:
    """The served checkpoint, in numpy, by the dense formula."""
    adapter = load(path)

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
    adapter = linear.train(vectors, classes, width=DIM, seed=seed)
    return lambda queries, gallery: frozen(adapter.apply(queries), adapter.apply(gallery))


def static_map(world: World, seed: int) -> Scoring:
    """The strongest static peer: full-rank maps of queries and of images, learned by QuARI's own loss."""
    import torch
    from torch.nn.functional import normalize

    from eyespot.adapters.quari.training.data import TrainingBatches
    from eyespot.adapters.quari.training.loss import noisy

    batches = TrainingBatches(TrainingData(world.pairs), SMALL_BATCH, 0, seed)
    torch.manual_seed(seed)
    maps = torch.nn.ModuleList([torch.nn.Linear(DIM, DIM), torch.nn.Linear(DIM, DIM)])
    optimizer = torch.optim.AdamW(maps.parameters(), 1e-3, weight_decay=1e-2)
    for number in range(RECIPE.epochs * batches.per_epoch):
        texts, targets = batches.batch(number)
        queries = normalize(maps[0](noisy(texts, RECIPE.noise, torch.default_generator)), dim=1)
        logits = queries @ normalize(maps[1](targets.images), dim=1).T / RECIPE.temperature
        logits = logits.masked_fill(targets.hidden, -torch.inf)
        loss = -(logits.log_softmax(0).diagonal() + logits.log_softmax(1).diagonal()).mean() / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def scores(queries: Vectors, gallery: Vectors) -> NDArray[Any]:
        both = zip(maps, (queries, gallery), strict=True)
        with torch.no_grad():
            left, right = (normalize(each(torch.from_numpy(rows)), dim=1) for each, rows in both)
        return np.asarray((left @ right.T).numpy())

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
        train(material, shape, replace(recipe, seed=seed), Path(out))
        return adapted_by(Path(out) / "model")


def methods(options: Namespace, seed: int) -> Iterator[tuple[str, Scoring, World]]:
    """Each method with its scoring, in one world."""
    world = World(seed, PICTURES)
    recipe = replace(RECIPE, epochs=options.epochs)
    yield "frozen", frozen, world
    yield "TA", task_adaptation(world, seed), world
    yield "static maps", static_map(world, seed), world
    yield "QuARI", trained(world, SHAPE, recipe, seed), world
    published = replace(recipe, start="random", batch=SMALL_BATCH)
    yield RANDOM, trained(world, replace(SHAPE, use_fro_norm=True), published, seed), world
    for name in ABLATIONS:
        yield f"QuARI, {name}", trained(world, *ablated(SHAPE, recipe, name), seed), world


def rank_all(options: Namespace) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, int]]]:
    """{task: {method: {query: ranking}}} over all seeds, and the judgements of all queries."""
    rankings: dict[str, dict[str, Any]] = {}
    grades: dict[str, dict[str, int]] = {}
    for seed in range(1 if options.quick else options.seeds):
        for method, scoring, world in methods(options, seed):
            started = time.perf_counter()
            test = world.test_set
            names = np.array([f"{seed}/{row}" for row in range(GALLERY)])
            for at, relevant in enumerate(test.relevant):
                grades[f"{seed}/{at}"] = dict.fromkeys(names[relevant].tolist(), 1)
            for task, queries in test.queries.items():
                best = np.argsort(-scoring(queries, test.gallery), axis=1, kind="stable")[:, :DEPTH]
                ranked = {f"{seed}/{at}": names[rows].tolist() for at, rows in enumerate(best)}
                rankings.setdefault(task, {}).setdefault(method, {}).update(ranked)
            say(f"seed {seed}: {method} ({time.perf_counter() - started:.0f} s to score)")
    return rankings, grades


def measurements(options: Namespace) -> Iterator[Measurement]:
    rankings, grades = rank_all(options)
    for task, runs in rankings.items():
        for lead in leads(task, {"QuARI": runs.pop("QuARI"), **runs}, Qrels(grades), MEASURE):
            if task != TRAINED_TASK or lead.peer not in (*STATIC, RANDOM):
                yield replace(lead, goal=None)
            elif lead.peer == RANDOM:
                yield NoHarm(**{field.name: getattr(lead, field.name) for field in fields(lead)})
            else:
                yield lead


def leads(task: str, runs: dict[str, Any], qrels: Qrels, measure: str) -> Iterator[Lead]:
    """QuARI, the first of the runs, against each of the others."""
    scores = {name: evaluate(Run.from_orders(rankings), qrels, [measure]) for name, rankings in runs.items()}
    for pair in compare(scores).pairs:
        mean, peer_mean = float(np.mean(pair.before)), float(np.mean(pair.after))
        low, high = pair.interval
        ratio = peer_mean / max(mean, 1e-9)
        yield Lead(
            f"{task}, {pair.run}", ratio, pair.run, ratio, ratio, len(pair.queries), 1.0,
            task=task, mean=mean, peer_mean=peer_mean,
            difference=0.0 - pair.difference, interval=(0.0 - high, 0.0 - low), p=pair.corrected_p,
        )  # fmt: skip


if __name__ == "__main__":
    command = Command(__doc__, quick="one seed")
    command.add_argument("--seeds", type=int, default=3, help="worlds and trainings")
    command.add_argument("--epochs", type=int, default=RECIPE.epochs, help="of each training")
    command.run(measurements)
