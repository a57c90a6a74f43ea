"""How far an audit's lower bounds on the share found can be trusted, and how many looks they take.

Simulated annotators go down rankings whose truth is known (those of `bench/remaining.py`, and long ones whose relevant
photos lie at lognormal ranks), stop after 100 photos in a row that are not relevant, and audit the rest. There are
two bounds on the share of relevant photos found: one that holds whatever the ranking is like, and one that holds if
what is unseen lies no deeper than evenly over the logarithm of the rank, which a user reads only where it comes to 90 %
or more. A ratio is the share of misses of what a user reads over the promised 5 %; the goal is at most 1. How often the
second bound holds by itself is printed beside it, also for rankings that break the condition. "Wrong at 90 %" counts
annotations that `--kept` takes with less than 90 % found.

    python bench/certificate.py [--quick] [--json]
"""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, say
from bench.remaining import LABELS, SYNTHETIC, Labels, Scenario, label_lists, of_lists
from eyespot.curate.annotate.annotation_store import AuditSample, Candidate
from eyespot.curate.annotate.audit_bounds import Audit, allocated, edges, even_part, most_hidden, reach, remaining
from eyespot.curate.annotate.auditing import Plan, audit_result, by_depth
from eyespot.curate.annotate.progress import SURE, descent

PROMISED = 0.05
SIZES = (300, 600)
INQUIRE_MEAN = 131  # relevant photos of a query, INQUIRE's mean
SCALES = {20_000: 600, 100_000: 1_000, 4_800_000: 2_000}  # photos, and the looks that are aimed at
STOPS = (200, 300, 500, 1_000, 2_000)


class Certified(NamedTuple):
    """One simulated annotation: the share found, and what the two bounds say of it; None: the second says nothing."""

    share: float
    guaranteed: float
    by_rank: float | None

    @property
    def bound(self) -> float:
        """What a user reads: the first bound, or the second where it calls the labelling complete."""
        return self.guaranteed if self.by_rank is None or self.by_rank < SURE else self.by_rank


@dataclass(frozen=True, kw_only=True)
class Trust(Measurement):
    """How often the bounds held."""

    size: int
    coverage: float
    guaranteed: float
    by_rank: float  # of all numbers that the condition gives, also of those that nobody is told
    without: float  # the share of annotations with no such number: a uniform audit, or finds that contradict it
    certified: float  # told to be complete
    wrong: float  # told to be complete and not

    def __str__(self) -> str:
        by_rank = f"by rank {self.by_rank:.1%} (none in {self.without:.0%})"
        return (
            f"{self.name:<55}: covers {self.coverage:.1%}, whatever the ranking {self.guaranteed:.1%}, {by_rank}; "
            f"certified {self.certified:.0%}, wrong at 90 % {self.wrong:.1%}{self.verdict}"
        )


def certified(labels: Labels, size: int, rng: np.random.Generator) -> Certified | None:
    """Go down, stop, audit; None where the list ends before, or leaves no more than the audit takes."""
    stop = descent(labels[: 200 * 100].tolist()).stopped_at
    if stop is None or len(labels) - stop <= size:
        return None
    rest = len(labels) - stop
    even = [Candidate(str(stop + at)) for at in rng.choice(rest, even_part(size, rest), replace=False).tolist()]
    drawn = AuditSample(rest, even, [str(at) for at in range(stop)])
    if len(even) < size:
        ranked = [Candidate(str(at)) for at in range(reach(stop, size, len(labels)))]
        drawn = by_depth(ranked, len(labels), drawn, Plan(size), rng)
    seen = {image: bool(labels[int(image)]) for image in [*drawn.seen, *(photo.image for photo in drawn.photos)]}
    result, found = audit_result(seen, drawn), sum(seen.values())
    assert result.left is not None
    by_rank = None if result.most_by_rank is None else _share(found, result.most_by_rank)
    return Certified(_share(found, int(labels.sum()) - found), _share(found, result.left.high), by_rank)


def _share(found: int, hidden: int) -> float:
    return found / (found + hidden) if found + hidden else 1.0


def outcomes(scenario: Scenario, size: int, n: int, seed: list[int]) -> list[Certified]:
    """So many annotations that came to a stop."""
    rng = np.random.default_rng(seed)
    done: list[Certified] = []
    while len(done) < n:
        if (outcome := certified(scenario(rng), size, rng)) is not None:
            done.append(outcome)
    return done


def trusted(name: str, scenario: Scenario, size: int, n: int, goal: float | None = None) -> Trust:
    """The scenario with n queries whose annotation came to a stop."""
    done = outcomes(scenario, size, n, [size, *name.encode()])
    by_rank = [outcome.by_rank <= outcome.share + 1e-12 for outcome in done if outcome.by_rank is not None]
    coverage = float(np.mean([outcome.bound <= outcome.share + 1e-12 for outcome in done]))
    ratio = (1 - coverage) / PROMISED
    return Trust(
        f"{name}, audit of {size}", ratio, "5 % of misses, as promised", ratio, ratio, n, goal,
        size=size, coverage=coverage,
        guaranteed=float(np.mean([outcome.guaranteed <= outcome.share + 1e-12 for outcome in done])),
        by_rank=float(np.mean(by_rank)) if by_rank else 1.0,
        without=1 - len(by_rank) / n,
        certified=float(np.mean([outcome.bound >= SURE for outcome in done])),
        wrong=float(np.mean([outcome.bound >= SURE > outcome.share for outcome in done])),
    )  # fmt: skip


# -- long rankings ----------------------------------------------------------------------------------------------------


def lognormal(rng: np.random.Generator, photos: int, median: float, spread: float, scattered: int = 0) -> Labels:
    """A ranking of so many photos with INQUIRE's mean number of relevant ones, half of them above the median rank.

    Further ones are scattered over all ranks.
    """
    ranks = np.exp(rng.normal(np.log(median), spread, INQUIRE_MEAN)).astype(int)
    labels = np.zeros(photos, bool)
    labels[np.minimum(ranks, photos - 1)] = True
    labels[rng.integers(0, photos, scattered)] = True
    return labels


def average_precision(labels: Labels, k: int = 50) -> float:
    """AP@k, over min(k, relevant)."""
    hits = np.flatnonzero(labels[:k])
    return float(((np.arange(len(hits)) + 1) / (hits + 1)).sum() / min(k, int(labels.sum())))


def looks() -> Iterator[str]:
    """How many looks certify 90 %, if none of them finds anything new."""
    uniform = {photos: _uniform_looks(photos) for photos in SCALES}
    yield "looks for 90 % with 131 found and nothing new, uniform: " + _row(uniform.values())
    for stop in STOPS:
        sizes = [looks_needed(INQUIRE_MEAN, stop, photos, SURE) for photos in SCALES]
        yield f"the same by depth, all of the first {stop} labelled: {_row(sizes)} (aim {_row(SCALES.values())})"


def looks_needed(found: int, depth: int, photos: int, share: float) -> int:
    """How large an audit must be to say that this share of the relevant photos is found, if it finds nothing new.

    `found` relevant photos are in the first `depth` of a ranking of so many photos, all of which are labelled.
    """
    allowed, rest = math.floor(found * (1 - share) / share + 1e-9), max(photos - depth, 1)

    def enough(size: int) -> bool:
        return most_hidden(0, _planned_inclusion(depth, photos, size), rest) <= allowed

    high = 1
    while high < rest and not enough(high):
        high = min(2 * high, rest)
    return bisect_left(range(high), True, lo=high // 2 + 1, key=enough)


def _planned_inclusion(depth: int, photos: int, size: int) -> float:
    """What `least_inclusion` comes to for an audit of this size."""
    even = even_part(size, photos - depth)
    if even == size:
        return size / (photos - depth)
    ranks = edges(depth, reach(depth, size, photos), photos)
    first, unseen = [rank + 1 for rank in ranks[:-1]], np.diff(ranks).tolist()
    share = even / (photos - depth)
    near = allocated(first[:-1], [round(n * (1 - share)) for n in unseen[:-1]], size - even)
    counts = [*(n * share + m for n, m in zip(unseen, near, strict=False)), unseen[-1] * share]
    chances = np.minimum.accumulate([min(1.0, count / n) for count, n in zip(counts, unseen, strict=True)])
    spans = np.diff(np.log(np.maximum(ranks, 1)))
    return float(chances @ spans / spans.sum())


def _uniform_looks(photos: int) -> int:
    allowed, low, high = int(INQUIRE_MEAN / SURE - INQUIRE_MEAN), 1, photos
    while low < high:
        middle = (low + high) // 2
        enough = remaining([Audit(photos, middle, 0)]).high <= allowed
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def _row(numbers: object) -> str:
    return " / ".join(f"{number:,}" for number in numbers)  # type: ignore[attr-defined]


def measurements(options: Namespace) -> Iterator[Measurement]:
    """Each scenario with each size of audit, then long rankings."""
    for line in looks():
        say(line)
    n = 50 if options.quick else 500
    lists = of_lists(label_lists(LABELS)) if LABELS.exists() else {}
    for name, scenario in {**lists, **SYNTHETIC}.items():
        for size in SIZES:
            yield trusted(name, scenario, size, n, None if options.quick else 1.0)
    for photos, size in SCALES.items():
        for median, spread in ((50, 0.8), (50, 1.0), (100, 1.2)):
            scenario = partial(lognormal, photos=photos, median=median, spread=spread)
            rng = np.random.default_rng(0)
            precision = np.mean([average_precision(scenario(rng)) for _ in range(50)])
            name = f"{photos:,}, half above rank {median} (AP@50 {precision:.2f})"
            for looked in (size, 2 * size, 4 * size):
                yield trusted(name, scenario, looked, n // 10)
    # Nothing but a look at a fifth of all photos can tell this one from the ones before
    hidden = partial(lognormal, photos=4_800_000, median=50, spread=0.8, scattered=60)
    yield trusted("4,800,000, the worst case: 60 of 191 anywhere", hidden, 4 * SCALES[4_800_000], n // 10)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the queries, without a goal").run(measurements)
