"""Whether a set can be answered without reasoning over both: by the question alone or the picture alone.

The paper leaves this open. An encoder that knows words and pictures ranks the pool by each; where one half alone finds
the targets about as well as both together, nothing has to be reasoned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyespot.curate._world import PhotoWorld
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.pipelines import Record
from eyespot.search.embedding import embed
from eyespot.types import Composer, Mask, Query, Vectors

CUTOFFS = (1, 10, 20, 50)
CHANCE = "a random order"


@dataclass(frozen=True)
class Shortcut:
    """What of the targets one way of asking finds: Recall@k of each query, by k."""

    way: str
    by_query: dict[int, list[float]]

    @property
    def recall(self) -> dict[int, float]:
        """Its mean."""
        return {k: float(np.mean(shares)) for k, shares in self.by_query.items()}


def shortcuts(made: FinishedSteps, queries: Sequence[Record]) -> list[Shortcut]:
    """Each way of asking, and a random order, over the pool; the input and what is in doubt are never ranked."""
    world, space = made.pipe.world, made.pipe.lists.space
    rows = world.rows(space)
    mask_rows = [rows[id] for id in made.pool if id in rows]
    count = int(world.view(space).starts[-1])
    pool: Mask = np.zeros(count, bool)
    pool[list(mask_rows)] = True
    subset = [one for one in queries if one["image"] in rows]
    if not subset or not pool.any():
        return []
    found = []
    left = {
        one["id"]: {rows[id] for id in (one["image"], *made.unknown.get(one["id"], [])) if id in rows} for one in subset
    }
    depth = min(max(CUTOFFS) + max(map(len, left.values())), int(pool.sum()))
    for way, vectors in _ways(world, space, subset, rows).items():
        hits = world.index(space).search(vectors, depth, pool).rows  # (queries, depth)
        found.append(Shortcut(way, _recalls(hits, subset, rows, left)))
    chances = {}
    for k in CUTOFFS:
        # In a random order each photo is among the first k of n with probability k / n
        chance_count = int(pool.sum())
        inside = [int(pool[list(left[one["id"]])].sum()) for one in subset]
        chances[k] = [min(1.0, k / max(1, chance_count - count)) for count in inside]
    return [*found, Shortcut(CHANCE, chances)]


def _ways(world: PhotoWorld, space: str, queries: Sequence[Record], rows: Mapping[str, int]) -> dict[str, Vectors]:
    """The queries' vectors, (queries, dim), by what is asked with; both as in a search by both."""
    words = world.texts([one["question"] for one in queries], space)
    pictures = world.vectors([rows[one["image"]] for one in queries], space)
    encoder = world.collection(space).encoder
    if isinstance(encoder, Composer):
        # Picture and question as one input, by an encoder that reads them so
        facts = world.view(space).facts([rows[one["image"]] for one in queries])
        pairs = zip(facts, queries, strict=True)
        composed = [Query.composed(Path(str(its["path"])), one["question"]) for its, one in pairs]
        both = embed(composed, world.collection(space).encoder)
    else:
        sums_both = words + pictures
        unit: Vectors = sums_both / np.maximum(np.linalg.norm(sums_both, axis=1, keepdims=True), 1e-6)
        both = unit
    return {"question alone": words, "picture alone": pictures, "both": both}


def _recalls(
    hits: NDArray[np.int64], queries: Sequence[Record], rows: Mapping[str, int], left: Mapping[str, set[int]]
) -> dict[int, list[float]]:
    shares: dict[int, list[float]] = {k: [] for k in CUTOFFS}
    for one, ranked in zip(queries, hits.tolist(), strict=True):
        others = [row for row in ranked if row not in left[one["id"]]]
        targets = {rows[id] for id in one["targets"] if id in rows}
        for k in CUTOFFS:
            shares[k].append(len(targets.intersection(others[:k])) / max(1, len(targets)))
    return shares
