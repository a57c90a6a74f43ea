"""What inputs, targets and pool share where they should not, or where it should be known, exactly or nearly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eyespot.curate._near_duplicates import Near, first_of_family, near_duplicates
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.split import TEST, TRAIN
from eyespot.pipelines import Record

NEAR = Near()


class Leak(NamedTuple):
    """What is shared, by how many, of how many."""

    what: str
    found: int
    among: int


def leaks(made: FinishedSteps) -> list[Leak]:
    """All that was looked for, also where nothing was found."""
    every, test, train = made.queries, made.in_split(TEST), made.in_split(TRAIN)
    inputs, targets = {one["image"] for one in train}, {id for one in train for id in one["targets"]}
    kin = _Kin(made)
    return [
        Leak("queries whose own input is in the pool (left out when they are scored)", *_count(every, _in(made.pool))),
        Leak("queries of which a target is a near-duplicate of the input", *_count(every, kin.copies_its_input)),
        Leak("photos of the pool that are near-duplicates of an earlier one", kin.repeated(made.pool), len(made.pool)),
        Leak("test queries whose input, or a near-duplicate, asks in training", *_count(test, kin.asks_in(inputs))),
        Leak("test queries of which a target is one in training", *_count(test, _shares(targets))),
        Leak("test queries whose question is one in training", *_count(test, _says(train))),
    ]


def _count(queries: Sequence[Record], is_so: Callable[[Record], bool]) -> tuple[int, int]:
    return sum(map(is_so, queries)), len(queries)


def _in(pool: Sequence[str]) -> Callable[[Record], bool]:
    known = set(pool)
    return lambda query: query["image"] in known


def _shares(targets: set[str]) -> Callable[[Record], bool]:
    return lambda query: bool(targets.intersection(query["targets"]))


def _says(train: Sequence[Record]) -> Callable[[Record], bool]:
    asked = {one["question"].casefold() for one in train}
    return lambda query: query["question"].casefold() in asked


@dataclass(frozen=True)
class _Kin:
    """Which photos of a set are near-duplicates of one another, by perceptual hash or by cosine."""

    made: FinishedSteps

    def copies_its_input(self, query: Record) -> bool:
        """Whether a target is a near-duplicate of the input."""
        return any(self._family[id] == self._family[query["image"]] for id in query["targets"])

    def asks_in(self, inputs: set[str]) -> Callable[[Record], bool]:
        """Whether a query's input is a near-duplicate of one of these."""
        families = {self._family[id] for id in inputs}
        return lambda query: self._family[query["image"]] in families

    def repeated(self, pool: Sequence[str]) -> int:
        """How many of these photos have an earlier near-duplicate among them."""
        return len(pool) - len({self._family[id] for id in pool})

    @cached_property
    def _family(self) -> dict[str, int]:
        """A number for each photo, the same for near-duplicates."""
        ids = sorted({*self.made.pool, *(one["image"] for one in self.made.queries)})
        world, space = self.made.pipe.world, self.made.pipe.lists.space
        hashes = world.hashes([(id, self.made.seeds[id]["path"]) for id in ids])
        pairs = near_duplicates(hashes, world.vectors([world.rows(space)[id] for id in ids], space), NEAR)
        return dict(zip(ids, np.asarray(first_of_family(pairs, len(ids))).tolist(), strict=True))
