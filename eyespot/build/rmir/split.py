"""Stage 7: which queries test, by how reliably nothing is missing among their targets; the others train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from eyespot.build._steps import Context, Dropped, Kept, Outcome, Records
from eyespot.build.rmir.votes import negativeness, reliability

TEST, TRAIN = "test", "train"
SHARED = "its input asks in the test too"


@dataclass(frozen=True)
class Settings:
    """A query over the `threshold` of reliability tests; the paper gives none: choose by the histogram.

    `votes` "retrieved" takes the list as it was found, with all its votes; "confident" only what stage 5 kept. `pool`:
    the targets of all queries, or all photos of the seed set that nobody doubts. `apart` drops queries for training
    whose input picture also asks in the test.
    """

    threshold: float = 0.5
    votes: Literal["retrieved", "confident"] = "retrieved"
    pool: Literal["targets", "seeds"] = "targets"
    apart: bool = True


@dataclass(frozen=True)
class Lists:
    """What reliability is told by: the space whose hits count, how many of them (K), and how many judges vote."""

    space: str
    depth: int
    judges: int


def split(queries: Records, context: Context, settings: Settings, lists: Lists) -> Iterator[Outcome]:
    """Each query with its `tsr` and `split`."""
    scores = reliabilities(context.earlier, settings, lists)
    test = {one["image"] for one in queries if scores[one["id"]] > settings.threshold}
    for one in queries:
        score = scores[one["id"]]
        told = {**one, "tsr": score, "split": TEST if score > settings.threshold else TRAIN}
        if settings.apart and told["split"] == TRAIN and one["image"] in test:
            yield Dropped(told, SHARED, f"reliability {score:.3f}")
        else:
            yield Kept(told)


def reliabilities(earlier: Mapping[str, Records], settings: Settings, lists: Lists) -> dict[str, float]:
    """The reliability of every query that had candidates."""
    listed = negatives(earlier["candidates"], earlier[_VOTES[settings.votes]], lists, settings)
    return {query: reliability([one for _, one in sorted(found)], lists.depth) for query, found in listed.items()}


def negatives(found: Records, judged: Records, lists: Lists, settings: Settings) -> dict[str, list[tuple[int, float]]]:
    """For each query the rank and the negativeness of its hits; a hit on which a judge was silent counts as 0."""
    votes = {one["id"]: [vote["verdict"] for vote in one["votes"]] for one in judged}
    listed: dict[str, list[tuple[int, float]]] = {}
    for one in found:
        mine = listed.setdefault(one["query"], [])
        known = one["id"] in votes or settings.votes == "retrieved"
        if (rank := one["ranks"].get(lists.space)) is not None and known:
            mine.append((rank, negativeness(votes.get(one["id"], []), lists.judges)))
    return listed


_VOTES = {"retrieved": "judged", "confident": "confident"}
