"""How often the interval of what remains is right, taken at the stopping rule, on thousands of made-up annotations.

Each simulated annotator goes down a ranking whose truth is known, stops after 100 photos in a row that are not
relevant, and audits a random draw of the rest. The interval covers if it contains the true number of relevant photos
that neither saw. Rankings are made from rules, and, if the shared data is there, from the 59 label lists of
INQUIRE-Rerank-Hard, resampled. Two other intervals are printed as well: the cautious one, which never covers less than
promised, and the mid-p one, which draws no random number. A ratio is the share of misses over the promised 5 %. The
goal is a coverage of 93 to 97 %, unless most stops left nothing behind, where no honest interval can fail.

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
from eyespot.curate.annotate.audit_bounds import Audit, Remaining, remaining
from eyespot.curate.annotate.progress import descent

Labels: TypeAlias = NDArray[np.bool_]  # (photos,), best first
Scenario: TypeAlias = Callable[[np.random.Generator], Labels]
LABELS = SHARED / "conformance" / "inquire_rerank_hard" / "qrels.txt"
PROMISED, LOWEST, HIGHEST = 0.95, 0.93, 0.97
AUDITS = (100, 300)  # photos


@dataclass(frozen=True, kw_only=True)
class Coverage(Measurement):
    """How often the interval covered, and its medians."""

    audit: int
    coverage: float
    cautious: float
    mid_p: float
    nothing_left: float  # the share of stops with no relevant photo below: there every interval covers
    missed: float  # the median share of all relevant photos that the rule left behind
    low: float  # medians
    high: float
    true: float

    @property
    def met(self) -> bool:
        """Where most stops leave nothing behind no honest interval can fail, so that is not judged."""
        return self.goal is None or self.nothing_left > 0.5 or LOWEST <= self.coverage <= HIGHEST

    def __str__(self) -> str:
        return (
            f"{self.name:<49}: covers {self.coverage:.1%}, cautious {self.cautious:.1%}, mid-p {self.mid_p:.1%}; "
            f"remaining {self.true:g} in {self.low:g} to {self.high:g} (medians); the rule alone misses "
            f"{self.missed:.0%}, nothing left in {self.nothing_left:.0%}{self.verdict}"
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
    """One simulated annotation: what was left, and the three intervals."""

    true: int
    missed: float
    shown: Remaining
    cautious: Remaining
    mid_p: Remaining


def annotated(labels: Labels, size: int, rng: np.random.Generator) -> Outcome | None:
    """Go down, stop, audit; None where the list ends before, or leaves no more than the audit takes."""
    stop = descent(labels.tolist()).stopped_at
    if stop is None or len(labels) - stop <= size:
        return None
    rest = labels[stop:]
    drawn = int(rng.choice(rest, size, replace=False).sum())
    audit, lot = Audit(len(rest), size, drawn), rng.random()
    shown, cautious, mid_p = (remaining(audit, lot=each) for each in (lot, 1.0, 0.5))
    return Outcome(int(rest.sum()) - drawn, rest.sum() / max(labels.sum(), 1), shown, cautious, mid_p)


def measured(name: str, scenario: Scenario, size: int, n: int) -> Coverage:
    """The scenario with n queries whose annotation came to a stop."""
    rng = np.random.default_rng([size, *name.encode()])
    outcomes: list[Outcome] = []
    while len(outcomes) < n:
        if (outcome := annotated(scenario(rng), size, rng)) is not None:
            outcomes.append(outcome)
    coverage = _covered(outcomes, "shown")
    low, high = np.median([outcome.shown[1:] for outcome in outcomes], axis=0).tolist()
    ratio, goal = (1 - coverage) / (1 - PROMISED), (1 - LOWEST) / (1 - PROMISED)
    return Coverage(
        f"{name}, audit of {size}", ratio, "5 % of misses, as promised", ratio, ratio, n, round(goal, 3),
        audit=size, coverage=coverage, low=low, high=high,
        cautious=_covered(outcomes, "cautious"),
        mid_p=_covered(outcomes, "mid_p"),
        nothing_left=float(np.mean([outcome.missed == 0 for outcome in outcomes])),
        missed=float(np.median([outcome.missed for outcome in outcomes])),
        true=float(np.median([outcome.true for outcome in outcomes])),
    )  # fmt: skip


def _covered(outcomes: list[Outcome], kind: str) -> float:
    intervals = ((outcome.true, getattr(outcome, kind)) for outcome in outcomes)
    return float(np.mean([interval.low <= true <= interval.high for true, interval in intervals]))


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
