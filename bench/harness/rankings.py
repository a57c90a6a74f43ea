"""Rankings of known truth: 59 labelled queries with 100 candidates each, lists that experts marked, and made ones."""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from bench.harness.data import Reals, shared
from eyespot.runs import read_qrels, read_run

Labels = NDArray[np.int64]  # (hits,), 1 relevant or 0, best hit first
HITS = 10_000


def labelled_rankings() -> list[Labels]:
    """The labels of each query's candidates, in the order given."""
    folder = shared("conformance/inquire_rerank_hard")
    run, qrels = read_run(folder / "run_given_order.txt"), read_qrels(folder / "qrels.txt")
    return np.split((run.graded(qrels) > 0).astype(np.int64), run.offsets[1:-1])


def marked_lists() -> list[Labels]:
    """Lists of INQUIRE-Search with an expert's marks, as far down as people looked, of three relevant hits or more."""
    found = []
    for path in sorted(shared("data/inquire_search").glob("*.csv")):
        text = path.read_text(encoding="utf-8")
        rows = csv.DictReader(text.splitlines(), delimiter=";" if ";" in text.partition("\n")[0] else ",")
        marks = np.array([row["marked"].lower() in ("1", "true") for row in rows]).astype(np.int64)
        found.append(marks[: 200 if path.name.startswith("cs4") else 500])
    return [labels for labels in found if labels.sum() >= 3]


def by_signal(labels: Labels, distance: float, rng: np.random.Generator) -> Labels:
    """In the order of a score; its means for relevant and other pictures are `distance` deviations apart."""
    return labels[np.argsort(-(distance * labels + rng.standard_normal(len(labels))))]


def random_labels(share: Reals, rng: np.random.Generator) -> Labels:
    return (rng.random(len(share)) < share).astype(np.int64)


def scattered(first: int, deep: int, rng: np.random.Generator) -> Labels:
    """The first few relevant, and others far down."""
    labels = np.zeros(HITS, np.int64)
    labels[:first] = 1
    labels[rng.choice(np.arange(3000, HITS), deep, replace=False)] = 1
    return labels


def made_rankings(rng: np.random.Generator) -> dict[str, Labels]:
    """Rankings of 10,000 hits."""
    rank = np.arange(1, HITS + 1)
    some = (np.arange(HITS) < 100).astype(np.int64)
    many = (np.arange(HITS) < 1000).astype(np.int64)
    return {
        "share 10/rank": random_labels(np.minimum(0.95, 10 / rank), rng),
        "share (30/rank)²": random_labels(np.minimum(0.95, (30 / rank) ** 2), rng),
        "30 first, then none": (rank <= 30).astype(np.int64),
        "500 first at 90 %": random_labels(np.where(rank <= 500, 0.9, 0.0), rng),
        "100 by a good score": by_signal(some, 2.0, rng),
        "1000 by a weak score": by_signal(many, 0.7, rng),
        "1 % anywhere": random_labels(np.full(HITS, 0.01), rng),
        "0.1 % anywhere": random_labels(np.full(HITS, 0.001), rng),
        "20 first, 30 deep": scattered(20, 30, rng),
        "20 first, 300 deep": scattered(20, 300, rng),
        "none before rank 10": ((rank > 10) & (rank <= 60)).astype(np.int64),
        "none": np.zeros(HITS, np.int64),
    }


def look_alikes(rng: np.random.Generator) -> dict[str, Labels]:
    """Rankings of 1,000 hits that begin with pictures that only look right."""
    rank = np.arange(1, 1001)
    found = {f"2 % to {end}, then 70 %": np.where(rank <= end, 0.02, 0.7) for end in (50, 150)}
    found["2 % to 100, 90 % to 300, then 2 %"] = np.where((rank > 100) & (rank <= 300), 0.9, 0.02)
    for low, high in ((20, 60), (50, 150), (100, 200)):
        end = int(rng.integers(low, high))
        falling = 0.7 * np.exp(-(rank - 1 - end) / 80)
        found[f"2 % to {low}-{high}, then 70 % falling"] = np.where(rank <= end, 0.02, falling)
    found["1 % to 100, then 20 %"] = np.where(rank <= 100, 0.01, 0.2)
    return {name: random_labels(share, rng) for name, share in found.items()}
