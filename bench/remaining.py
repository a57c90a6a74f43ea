"""How often the interval of what remains is right, taken at the stopping rule, on thousands of made-up annotations.

Each simulated annotator goes down a ranking whose truth is known, stops after 100 photos in a row that are not
relevant, and audits a random draw of the rest. The interval covers if the true number of relevant photos that neither
saw lies in it. Rankings are made from rules, and, where a folder `shared` lies beside the checkout, from the 59 label
lists of INQUIRE-Rerank-Hard, resampled. Beside the interval that eyespot shows stand the cautious one, which never
covers less than promised, and the mid-p one, which needs no lot. Exit code 4 if coverage lies outside 93 to 97 %,
unless most stops left nothing behind, where no honest interval can fail.

    python bench/remaining.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.annotate.remaining import Audit, Remaining, remaining
from eyespot.curate.annotate.stopping import descent

Labels: TypeAlias = NDArray[np.bool_]  # (photos,), best first
Scenario: TypeAlias = Callable[[np.random.Generator], Labels]
SHARED = Path(__file__).resolve().parent.parent.parent / "shared/conformance/inquire_rerank_hard/qrels.txt"
GOAL = (0.93, 0.97)
AUDITS = (100, 300)  # photos


@dataclass(frozen=True)
class Result:
    """One line of the answer: how often the interval held, and what it looked like."""

    name: str
    audit: int
    n: int
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
        """Where most stops leave nothing behind no honest interval can fail, so what is told there is not judged."""
        return self.nothing_left > 0.5 or GOAL[0] <= self.coverage <= GOAL[1]


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
    """The ranking knows nothing."""
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
    """The ranking is the wrong way round."""
    return normal_scores(rng)[::-1]


def large(rng: np.random.Generator) -> Labels:
    """A collection of 200,000 photos of which few are relevant."""
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
    found: dict[str, list[bool]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, grade = line.split()[0], line.split()[-1]
        found.setdefault(query, []).append(grade == "1")
    return [np.array(labels) for labels in found.values()]


def of_lists(lists: list[Labels]) -> dict[str, Scenario]:
    """Rankings of several thousand photos made of one query's labels each."""

    def one_by_one(rng: np.random.Generator) -> Labels:
        return _thinned(rng.choice(_one(lists, rng), rng.integers(1000, 8000)), rng)

    def in_pieces(rng: np.random.Generator) -> Labels:
        labels = _one(lists, rng)
        starts = rng.integers(0, len(labels) - 20, rng.integers(50, 400))
        return _thinned(np.concatenate([labels[start : start + 20] for start in starts]), rng)

    return {"INQUIRE's lists, label by label": one_by_one, "INQUIRE's lists, in pieces of 20": in_pieces}


def _one(lists: list[Labels], rng: np.random.Generator) -> Labels:
    return lists[rng.integers(len(lists))]


def _thinned(labels: Labels, rng: np.random.Generator) -> Labels:
    """The first hundred as they are, then fewer relevant ones the deeper it goes."""
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
    shown, cautious, mid_p = (remaining(audit, lot=one) for one in (lot, 1.0, 0.5))
    return Outcome(int(rest.sum()) - drawn, rest.sum() / max(labels.sum(), 1), shown, cautious, mid_p)


def measured(name: str, scenario: Scenario, size: int, n: int) -> Result:
    """The scenario with so many queries whose annotation came to a stop."""
    rng = np.random.default_rng([size, *name.encode()])
    found: list[Outcome] = []
    while len(found) < n:
        one = annotated(scenario(rng), size, rng)
        found += [] if one is None else [one]
    shown, cautious, mid_p = (_covered(found, kind) for kind in ("shown", "cautious", "mid_p"))
    nothing = float(np.mean([one.missed == 0 for one in found]))
    missed = float(np.median([one.missed for one in found]))
    low, high = np.median([one.shown[1:] for one in found], axis=0).tolist()
    true = float(np.median([one.true for one in found]))
    return Result(name, size, n, shown, cautious, mid_p, nothing, missed, low, high, true)


def _covered(found: list[Outcome], kind: str) -> float:
    intervals = ((one.true, getattr(one, kind)) for one in found)
    return float(np.mean([interval.low <= true <= interval.high for true, interval in intervals]))


def results(n: int) -> Iterator[Result]:
    """Every scenario with every size of audit."""
    real = of_lists(label_lists(SHARED)) if SHARED.exists() else {}
    for name, scenario in {**real, **SYNTHETIC}.items():
        for size in AUDITS:
            yield measured(name, scenario, size, n)


def main() -> int:
    """Print the results; 4 if coverage misses its goal anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line per result")
    asked = parser.parse_args()
    met = True
    if not SHARED.exists():
        print("without INQUIRE's label lists: no folder shared beside the checkout", file=sys.stderr)
    for result in results(200 if asked.quick else 2000):
        met &= result.met or asked.quick  # 200 queries tell coverage to within 3 points only
        print(json.dumps(asdict(result)) if asked.json else _line(result), flush=True)
    return 0 if met else 4


def _line(result: Result) -> str:
    return (
        f"{result.name:<34} audit {result.audit:>3}: covers {result.coverage:.1%}, cautious {result.cautious:.1%}, "
        f"mid-p {result.mid_p:.1%}; remaining {result.true:g} in {result.low:g} to {result.high:g} (medians); "
        f"the rule alone misses {result.missed:.0%}, nothing left in {result.nothing_left:.0%}"
    )


if __name__ == "__main__":
    sys.exit(main())
