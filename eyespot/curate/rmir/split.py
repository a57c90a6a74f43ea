"""Stage 7: which queries test, by how reliably nothing is missing among their targets; the others train."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eyespot.curate.rmir.panel import voted_on
from eyespot.curate.rmir.votes import negativeness, reliability
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record, Records

TEST, TRAIN = "test", "train"
SHARED = "its input asks in the test too"


@dataclass(frozen=True)
class SplitSettings:
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


def split(queries: Records, context: Context, settings: SplitSettings, lists: Lists) -> Iterator[Outcome]:
    """Each query with its `tsr` and `split`."""
    hits = ranked(counted(context.earlier, settings), lists.space)
    scores = {one["id"]: tail_reliability(hits.get(one["id"], []), lists.judges, lists.depth) for one in queries}
    test = {one["image"] for one in queries if scores[one["id"]] > settings.threshold}
    for one in queries:
        score = scores[one["id"]]
        record = {**one, "tsr": score, "split": TEST if score > settings.threshold else TRAIN}
        if settings.apart and record["split"] == TRAIN and one["image"] in test:
            yield Drop(record, SHARED, f"reliability {score:.3f}")
        else:
            yield Keep(record)


def counted(earlier: Mapping[str, Records], settings: SplitSettings) -> Iterable[Record]:
    """The triplets whose votes count, those on which a judge failed among them."""
    return earlier["confident"] if settings.votes == "confident" else voted_on(earlier["judged"])


def ranked(triplets: Iterable[Record], space: str) -> dict[str, list[Record]]:
    """The hits of an image index for each query, in their order; queries without any are left out."""
    found: dict[str, list[Record]] = {}
    for one in triplets:
        if space in one["ranks"]:
            found.setdefault(one["query"], []).append(one)
    return {query: sorted(hits, key=lambda one: one["ranks"][space]) for query, hits in found.items()}


def tail_reliability(hits: Sequence[Record], judges: int, depth: int) -> float:
    """The reliability (TSR) that hits in their order tell, by the votes they have, over the first `depth` places."""
    return reliability([negativeness([vote["verdict"] for vote in one["votes"]], judges) for one in hits], depth)
