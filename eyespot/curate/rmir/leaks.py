"""What inputs, targets and pool share where they should not, or where it should be known, exactly or nearly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.split import TEST, TRAIN
from eyespot.gallery.groups.near_duplicates import Near, first_of_family, near_duplicates

NEAR = Near()


class Leak(NamedTuple):
    """What is shared, by how many, of how many."""

    what: str
    found: int
    among: int


def leaks(made: FinishedSteps) -> list[Leak]:
    """All that was looked for, also where nothing was found."""
    every, test, train = made.queries, made.in_split(TEST), made.in_split(TRAIN)
    family, pool = families(made), set(made.pool)
    inputs = {family[one["image"]] for one in train}
    targets = {id for one in train for id in one["targets"]}
    questions = {one["question"].casefold() for one in train}
    in_pool = sum(one["image"] in pool for one in every)
    copies = sum(any(family[id] == family[one["image"]] for id in one["targets"]) for one in every)
    repeated = len(made.pool) - len({family[id] for id in made.pool})
    same_input = sum(family[one["image"]] in inputs for one in test)
    same_target = sum(not targets.isdisjoint(one["targets"]) for one in test)
    same_question = sum(one["question"].casefold() in questions for one in test)
    return [
        Leak("queries whose own input is in the pool (left out when they are scored)", in_pool, len(every)),
        Leak("queries of which a target is a near-duplicate of the input", copies, len(every)),
        Leak("photos of the pool that are near-duplicates of an earlier one", repeated, len(made.pool)),
        Leak("test queries whose input, or a near-duplicate, asks in training", same_input, len(test)),
        Leak("test queries of which a target is one in training", same_target, len(test)),
        Leak("test queries whose question is one in training", same_question, len(test)),
    ]


def families(made: FinishedSteps) -> dict[str, int]:
    """A number for each photo of the set, the same for near-duplicates by perceptual hash or by cosine."""
    ids = sorted({*made.pool, *(one["image"] for one in made.queries)})
    world, space = made.pipe.world, made.pipe.lists.space
    hashes = world.hashes([(id, made.seeds[id]["path"]) for id in ids])
    rows = world.rows(space)
    pairs = near_duplicates(hashes, world.vectors([rows[id] for id in ids], space), NEAR)
    return dict(zip(ids, np.asarray(first_of_family(pairs, len(ids))).tolist(), strict=True))
