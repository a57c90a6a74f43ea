"""How often the interval of what remains is right, taken at the stopping rule, on thousands of made-up annotations.

Each simulated annotator goes down a ranking whose truth is known, stops after 100 photos in a row that are not
relevant, and audits the rest as `eyespot annotate audit` draws it. The interval covers if it contains the true number
of relevant photos that neither saw. Rankings are made from rules, and, if the shared data is there, from the 59 label
lists of INQUIRE-Rerank-Hard, resampled. `width` is that of the interval over the one that takes only the evenly drawn
part of the audit. A ratio is the share of misses over the promised 5 %. The goal is a coverage of 93 % at least.

    python bench/remaining.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import SHARED, Command, Measurement, say
from eyespot.curate.annotate.audit_bounds import Audit, Band, Remaining, draw_bands, even_part, reach, remaining
from eyespot.curate.annotate.progress import descent

Labels: TypeAlias = NDArray[np.bool_]  # (photos,), best first
Scenario: TypeAlias = Callable[[np.random.Generator], Labels]
LABELS = SHARED / "conformance" / "inquire_rerank_hard" / "qrels.txt"
PROMISED, LOWEST = 0.95, 0.93
AUDITS = (60, 300)  # photos


@dataclass(frozen=True, kw_only=True)
class Coverage(Measurement):
    """How often the interval covered, and its medians."""

    audit: int
    coverage: float
    width: float  # the mean, of that of the even part's
    headline: float  # the share of estimates in the middle half of their interval
    nothing_left: float  # the share of stops with no relevant photo below
    missed: float  # the median share of all relevant photos that the rule left behind
    low: float  # medians
    high: float
    true: float

    @property
    def met(self) -> bool:
        """Too wide an interval is no miss: where nothing is left every honest one holds."""
        return self.goal is None or self.coverage >= LOWEST

    def __str__(self) -> str:
        return (
            f"{self.name:<49}: covers {self.coverage:.1%}, {self.width:.2f} as wide as by the even part; "
            f"remaining {self.true:g} in {self.low:g} to {self.high:g} (medians), a headline in {self.headline:.0%}; "
            f"the rule alone misses {self.missed:.0%}, nothing left in {self.nothing_left:.0%}{self.verdict}"
        )


# -- rankings whose truth is known ------------------------------------------------------------------------------------


def falling(rng: np.random.Generator) -> Labels:
    """Relevance falls as a power of the rank."""
    ranks = np.arange(1, rng.integers(1000, 8000))
    weight = (ranks + 5.0) ** -rng.uniform(0.6, 1.4)
    labels: Labels = rng.random(len(ranks)) < np.minimum(_few(rng) * weight / weight.sum(), 0.95)
    return labels


def normal_scores(rng: np.random.Generator) -> Labels:
    """Scores of relevant and other photos are two bells that overlap."""
    relevant = np.arange(rng.integers(1000, 8000)) < _few(rng)
    scores = rng.normal(size=len(relevant)) + relevant * rng.uniform(0.5, 3)
    return relevant[np.argsort(-scores)]


def no_order(rng: np.random.Generator) -> Labels:
    """The ranking has no information."""
    labels: Labels = rng.random(rng.integers(1000, 8000)) < np.exp(rng.uniform(np.log(0.002), np.log(0.02)))
    return labels


def bursts(rng: np.random.Generator) -> Labels:
    """Relevant photos come in four dense groups, most of them below any sensible stop."""
    labels = np.zeros(5000, bool)
    labels[:20] = rng.random(20) < 0.5
    for start in rng.integers(150, 4900, 4):
        labels[start : start + 60] |= rng.random(60) < 0.4
    return labels


def a_shelf(rng: np.random.Generator) -> Labels:
    """A head of relevant photos, nothing for long, then one in seven of the last fifth."""
    labels = np.zeros(5000, bool)
    labels[:40], labels[4000:] = rng.random(40) < 0.7, rng.random(1000) < 0.15
    return labels


def upside_down(rng: np.random.Generator) -> Labels:
    """The ranking is reversed."""
    return normal_scores(rng)[::-1]


def large(rng: np.random.Generator) -> Labels:
    """A collection of 200,000 photos, few of them relevant."""
    relevant = np.arange(200_000) < rng.integers(200, 3000)
    scores = rng.normal(size=len(relevant)) + relevant * rng.uniform(0.5, 2.5)
    return relevant[np.argsort(-scores)]


def nearly_perfect(rng: np.random.Generator) -> Labels:
    """The ranking has nearly every relevant photo above the stop."""
    relevant = np.arange(rng.integers(1000, 8000)) < _few(rng)
    scores = rng.normal(size=len(relevant)) + relevant * 5.0
    return relevant[np.argsort(-scores)]


def _few(rng: np.random.Generator) -> int:
    return int(np.exp(rng.uniform(np.log(5), np.log(300))))


SYNTHETIC: dict[str, Scenario] = {
    "falling as a power of the rank": falling,
    "two overlapping bells": normal_scores,
    "no order at all": no_order,
    "groups deep down": bursts,
    "a shelf at the end": a_shelf,
    "upside down": upside_down,
    "200,000 photos": large,
    "nearly perfect": nearly_perfect,
}


# -- the real label lists, resampled ----------------------------------------------------------------------------------


def label_lists(path: Path) -> list[Labels]:
    """The 100 labels of each query in the order of the file."""
    lists: dict[str, list[bool]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, grade = line.split()[0], line.split()[-1]
        lists.setdefault(query, []).append(grade == "1")
    return [np.array(labels) for labels in lists.values()]


def of_lists(lists: list[Labels]) -> dict[str, Scenario]:
    """Rankings of several thousand photos made of one query's labels each."""

    def label_by_label(rng: np.random.Generator) -> Labels:
        return _thinned(rng.choice(_random_list(lists, rng), rng.integers(1000, 8000)), rng)

    def in_pieces(rng: np.random.Generator) -> Labels:
        labels = _random_list(lists, rng)
        starts = rng.integers(0, len(labels) - 20, rng.integers(50, 400))
        return _thinned(np.concatenate([labels[start : start + 20] for start in starts]), rng)

    return {"INQUIRE's lists, label by label": label_by_label, "INQUIRE's lists, in pieces of 20": in_pieces}


def _random_list(lists: list[Labels], rng: np.random.Generator) -> Labels:
    return lists[rng.integers(len(lists))]


def _thinned(labels: Labels, rng: np.random.Generator) -> Labels:
    """The first hundred as they are, then fewer relevant photos with depth."""
    depth = np.maximum(np.arange(len(labels)) / 100, 1)
    return labels & (rng.random(len(labels)) < depth ** -rng.uniform(0.7, 1.5))


# -- the measurement --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One simulated annotation: what was left, and the interval by the whole audit and by its even part."""

    true: int
    missed: float
    whole: Remaining
    even: Remaining


def annotated(labels: Labels, size: int, rng: np.random.Generator) -> Outcome | None:
    """Go down, stop, audit; None where the list ends before, or leaves no more than the audit takes."""
    stop = descent(labels.tolist()).stopped_at
    if stop is None or len(labels) - stop <= size:
        return None
    bands, even = drawn(len(labels), stop, size, rng)
    parts = [_audit(band.unseen, band.drawn, labels) for band in bands]
    rest, looked_at = labels[stop:], sum(part.drawn for part in parts)
    true = int(rest.sum()) - sum(part.relevant for part in parts)
    evenly, since = _audit(len(rest), even, labels), sum(part.relevant for part in parts)
    alone = remaining([evenly]).without(since - evenly.relevant, len(rest) - looked_at)
    return Outcome(true, rest.sum() / max(labels.sum(), 1), remaining(parts), alone)


def drawn(photos: int, stop: int, size: int, rng: np.random.Generator) -> tuple[list[Band], list[str]]:
    """The bands of an audit whose photos are named by their rank, and those of them that were drawn evenly."""
    rest, end = photos - stop, reach(stop, size, photos)
    even = [str(rank) for rank in rng.choice(np.arange(stop + 1, photos + 1), even_part(size, rest), replace=False)]
    if len(even) == size:
        return [Band(stop + 1, photos, rest, even)], even
    unseen = {str(rank): rank for rank in range(stop + 1, end + 1)}
    return draw_bands(unseen, set(even), size - len(even), rng, end=end, photos=photos, rest=rest), even


def _audit(rest: int, drawn: list[str], labels: Labels) -> Audit:
    return Audit(rest, len(drawn), sum(bool(labels[int(rank) - 1]) for rank in drawn))


def measured(name: str, scenario: Scenario, size: int, n: int) -> Coverage:
    """The scenario with n queries whose annotation came to a stop."""
    rng = np.random.default_rng([size, *name.encode()])
    outcomes: list[Outcome] = []
    while len(outcomes) < n:
        if (outcome := annotated(scenario(rng), size, rng)) is not None:
            outcomes.append(outcome)
    coverage = float(np.mean([outcome.whole.low <= outcome.true <= outcome.whole.high for outcome in outcomes]))
    low, high = np.median([outcome.whole[1:] for outcome in outcomes], axis=0).tolist()
    ratio, goal = (1 - coverage) / (1 - PROMISED), (1 - LOWEST) / (1 - PROMISED)
    widths = np.array([[one.high - one.low for one in (outcome.whole, outcome.even)] for outcome in outcomes])
    return Coverage(
        f"{name}, audit of {size}", ratio, "5 % of misses, as promised", ratio, ratio, n, round(goal, 3),
        audit=size, coverage=coverage, low=low, high=high,
        width=float(np.divide(*widths.mean(axis=0))),
        headline=float(np.mean([str(outcome.whole).startswith("about") for outcome in outcomes])),
        nothing_left=float(np.mean([outcome.missed == 0 for outcome in outcomes])),
        missed=float(np.median([outcome.missed for outcome in outcomes])),
        true=float(np.median([outcome.true for outcome in outcomes])),
    )  # fmt: skip


def measurements(options: Namespace) -> Iterator[Measurement]:
    """Each scenario with each size of audit."""
    if not LABELS.exists():
        say(f"without INQUIRE's label lists: {LABELS} is missing")
    lists = of_lists(label_lists(LABELS)) if LABELS.exists() else {}
    for name, scenario in {**lists, **SYNTHETIC}.items():
        for size in AUDITS:
            if options.quick:  # 200 queries measure coverage only to within 3 points
                yield replace(measured(name, scenario, size, 200), goal=None)
            else:
                yield measured(name, scenario, size, 2000)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the queries, without a goal").run(measurements)
