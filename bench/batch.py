"""100 queries in one request to `/v1/search`, against one query in one request, over 200,000 made vectors (goal: at
most 3 times as long, by look and by both words and look; why it is missed: docs/decisions/0039), and the scan alone.
Each request has fresh queries.

    python bench/batch.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, Race
from bench.serve import WORDS, make_gallery

ROWS, QUERIES, GOAL = 200_000, 100, 3.0


def hits(client: Any, by: str, count: int, rng: np.random.Generator) -> list[Any]:
    """The hits of this number of fresh queries."""
    queries = [f"{rng.integers(10**6)} a {' '.join(rng.choice(WORDS, 2, replace=False))}" for _ in range(count)]
    answer = client.post("/v1/search", json={"queries": queries, "limit": 10, "by": by})
    found: list[Any] = [one["hits"] for one in answer.json()["results"]]
    assert len(found) == count and all(len(one) == 10 for one in found)
    return found


def scanned(index: Any, vectors: Any, count: int, rng: np.random.Generator) -> None:
    """The ten nearest rows of this number of these vectors."""
    assert index.search(vectors[rng.choice(len(vectors), count, replace=False)], 10).rows.shape == (count, 10)


def raced(race: Race, rng: np.random.Generator, quick: bool) -> Measurement:
    """The race after ten turns unmeasured: the index makes its codes once searches have paid for them."""
    for _ in range(10):
        race.warm(rng)
    for _ in range(5 if quick else 30):
        race.run(rng)
    return race.measurement()


def measurements(options: Namespace) -> Iterator[Measurement]:
    from fastapi.testclient import TestClient

    from eyespot import Collection
    from eyespot.web import ServerSettings, application

    gallery = make_gallery(options.folder / "gallery", ROWS // 10 if options.quick else ROWS)
    rng, app = np.random.default_rng(0), application(ServerSettings(gallery, seconds=600))
    collection, pairs = Collection(gallery), [f"a {one} {other}" for one in WORDS for other in WORDS]
    vectors = collection.encoder.encode_texts(pairs)
    many, single = (partial(scanned, collection.index, vectors, count) for count in (QUERIES, 1))
    yield raced(Race("batch/scan", "one query", many, single, GOAL, clock=time.perf_counter), rng, options.quick)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 4000)) as client:
        for by in ("look", "both"):
            ours, theirs = (partial(hits, client, by, count) for count in (QUERIES, 1))
            race = Race(f"batch/{by}", "one query", ours, theirs, GOAL, clock=time.perf_counter)
            yield raced(race, rng, options.quick)


if __name__ == "__main__":
    Command(__doc__, fast=True).run(measurements)
