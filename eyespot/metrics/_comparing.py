"""Whether one run is better than another: differences of the same queries, with interval, tests and correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import Reals
from eyespot.metrics._scores import CHUNK, Scores, mean_of
from eyespot.types import UsageError, quantity

EXACT = 20  # this many differing queries have a million assignments of signs: all of them are counted
TINY = 1e-9  # two ways to sum the same fractions differ by less, two values of a measure by more
FEW = 5  # with this many differing queries the smallest p there can be, 2 / 2^5, is above 0.05
CORRECTIONS = ("holm", "none")


@dataclass(frozen=True)
class Resampling:
    """How often is drawn, and from which seed on: the same seed gives the same numbers."""

    samples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"the number of samples is 1 or more, not {self.samples}")
        if self.seed < 0:
            raise UsageError(f"the seed is 0 or more, not {self.seed}")


USUAL = Resampling()


class SignFlips(NamedTuple):
    """The p of the paired randomisation test, and whether every assignment of signs was counted."""

    p: float
    exact: bool


class Move(NamedTuple):
    """One query's values under the baseline and under the other run."""

    query: str
    baseline: float
    value: float
    difference: float


@dataclass(frozen=True, eq=False)
class Compared:
    """One run against the baseline by one measure; `before` and `after` (q,) are their values of `queries`.

    `interval` holds the middle 95% of the mean differences of resampled queries. `corrected_p` is `flips.p` corrected
    for all tests of the comparison.
    """

    run: str
    measure: str
    queries: Sequence[str]
    before: Reals
    after: Reals
    interval: tuple[float, float]
    flips: SignFlips
    corrected_p: float

    @property
    def differences(self) -> Reals:
        """What the run has more than the baseline, (q,); 0 where the two are equal up to rounding."""
        return _differences(self.before, self.after)

    @property
    def difference(self) -> float:
        """The mean difference."""
        return mean_of(self.differences)

    @property
    def means(self) -> tuple[float, float]:
        """The means of the baseline and of the run over the same queries."""
        return mean_of(self.before), mean_of(self.after)

    @property
    def wins(self) -> int:
        """Queries on which the run is better than the baseline."""
        return int((self.differences > 0).sum())

    @property
    def losses(self) -> int:
        """Queries on which the baseline is better."""
        return int((self.differences < 0).sum())

    @property
    def ties(self) -> int:
        """Queries on which both are equal."""
        return len(self.queries) - self.wins - self.losses

    @property
    def effect(self) -> float:
        """The mean difference in standard deviations of the differences (Cohen's d_z); 0 if nothing differs.

        NaN where all differences are alike, for then the deviation is 0, and for a single query.
        """
        differences = self.differences
        if not differences.any():
            return 0.0
        spread = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
        return self.difference / spread if spread > TINY else math.nan

    def moves(self) -> list[Move]:
        """Every query with its two values, in the order of the judgements."""
        columns = self.before.tolist(), self.after.tolist(), self.differences.tolist()
        return [Move(*row) for row in zip(self.queries, *columns, strict=True)]

    def up(self, most: int) -> list[Move]:
        """The queries that won most, the largest gain first; among equals the one judged first."""
        return sorted((move for move in self.moves() if move.difference > 0), key=lambda move: -move.difference)[:most]

    def down(self, most: int) -> list[Move]:
        """The queries that lost most, the largest loss first; among equals the one judged first."""
        return sorted((move for move in self.moves() if move.difference < 0), key=lambda move: move.difference)[:most]

    def as_json(self, most: int = 6, per_query: bool = False) -> dict[str, Any]:
        """All of it for JSON, with the `most` queries that moved furthest each way."""
        report: dict[str, Any] = {"run": self.run, "measure": self.measure, "queries": len(self.queries)}
        report |= dict(zip(("baseline", "mean"), self.means, strict=True))
        report |= {"difference": self.difference, "interval": list(self.interval), "effect": self.effect}
        report |= {"p": self.flips.p, "exact": self.flips.exact, "corrected_p": self.corrected_p}
        report |= {"wins": self.wins, "losses": self.losses, "ties": self.ties}
        report |= {"up": [m._asdict() for m in self.up(most)], "down": [m._asdict() for m in self.down(most)]}
        if per_query:
            report["per_query"] = {m.query: dict(zip(m._fields[1:], m[1:], strict=True)) for m in self.moves()}
        return report


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every run against the baseline by every measure: runs in the order given, measures within."""

    baseline: str
    pairs: Sequence[Compared]
    measures: Mapping[str, Measure]
    how: Resampling
    correction: str
    notes: list[str] = field(default_factory=list)

    def of(self, run: str, measure: str) -> Compared:
        """One run by one measure; `UsageError` if they were not compared."""
        found = next((pair for pair in self.pairs if (pair.run, pair.measure) == (run, measure)), None)
        if found is None:
            there = ", ".join(f"{pair.run} by {pair.measure}" for pair in self.pairs)
            raise UsageError(f"{run!r} by {measure!r} was not compared; compared were: {there}")
        return found

    def as_json(self, most: int = 6, per_query: bool = False) -> dict[str, Any]:
        """All of it for JSON."""
        return {
            "baseline": self.baseline,
            "measures": {label: measure.definition for label, measure in self.measures.items()},
            **asdict(self.how),
            "correction": self.correction,
            "comparisons": [pair.as_json(most, per_query) for pair in self.pairs],
            "notes": self.notes,
        }


def compare(scores: Mapping[str, Scores], how: Resampling = USUAL, correction: str = "holm") -> Comparison:
    """The first run's scores are the baseline; all others are compared with it, query by query.

    Queries that only one of two runs has values for are left out on both sides. `correction` is one of `CORRECTIONS`.
    Raises `UsageError` for fewer than two runs, for runs scored by different measures, and where two share no query.
    """
    if len(scores) < 2:
        raise UsageError("a comparison needs two runs or more, the baseline first")
    (baseline, first), *others = scores.items()
    of_all = [note for note in first.notes if all(note in each.notes for _, each in others)]
    notes = [*of_all, *(f"{name}: {n}" for name, each in scores.items() for n in each.notes if n not in of_all)]
    pairs: list[Compared] = []
    for name, other in others:
        if dict(other.measures) != dict(first.measures):
            raise UsageError(f"{name} was scored by other measures than the baseline; score all runs alike")
        at = {query: row for row, query in enumerate(other.queries)}
        rows = [(row, at[query]) for row, query in enumerate(first.queries) if query in at]  # in the order of the first
        if not rows:
            raise UsageError(f"{baseline} and {name} have no query in common; score both by the same judgements")
        if len(rows) < max(len(first.queries), len(other.queries)):
            notes.append(f"{name}: compared on the {quantity(len(rows), 'query')} that {baseline} has values for, too")
        of_first, of_other = zip(*rows, strict=True)
        pairs += _compared(name, first.take(of_first), other.take(of_other), how)
    ps = corrected([pair.flips.p for pair in pairs], correction)
    pairs = [replace(pair, corrected_p=p) for pair, p in zip(pairs, ps, strict=True)]
    few = [pair.wins + pair.losses for pair in pairs if 1 <= pair.wins + pair.losses <= FEW]
    if few:
        tests = f"{len(few)} of {len(pairs)} tests have at most {max(few)} differing queries"
        notes.append(f"{tests}, which cannot give a p below {2.0 ** (1 - max(few)):g}")
    return Comparison(baseline, pairs, first.measures, how, correction, notes)


def _compared(name: str, first: Scores, other: Scores, how: Resampling) -> Iterator[Compared]:
    columns = {label: _differences(first.values[label], other.values[label]) for label in first.values}
    gaps = replace(first, values=columns)
    tested = sign_flips(np.stack([*columns.values()], axis=1), how)
    for label, flips in zip(columns, tested, strict=True):
        values = first.values[label], other.values[label], gaps.interval(label, how.samples, how.seed)
        yield Compared(name, label, first.queries, *values, flips, flips.p)


def _differences(before: Reals, after: Reals) -> Reals:
    differences = after - before
    return np.where(np.abs(differences) <= TINY, 0.0, differences)


# -- tests --------------------------------------------------------------------------------------------------


def sign_flips(differences: NDArray[Any] | Sequence[Any], how: Resampling = USUAL) -> list[SignFlips]:
    """The paired randomisation test of each column of differences (q, measures), two-sided (Fisher 1935).

    If both runs were alike, each difference could as well have the other sign: p is the share of assignments of signs
    whose sum is at least as far from 0 as the one observed. With up to 20 differences that are not 0 all assignments
    are counted; beyond, `samples` are drawn, and the observed one counts among them: (count + 1) / (samples + 1).
    """
    differences = np.asarray(differences, np.float64)
    few = np.count_nonzero(differences, axis=0) <= EXACT  # (measures,)
    if few.all():
        drawn = np.ones(len(few))
    else:
        # The p of each column by drawn signs, the same signs for all columns, (measures,)
        rng = np.random.default_rng(how.seed)
        totals = differences.sum(axis=0)  # (measures,)
        count = np.zeros(len(totals))
        rows = max(1, CHUNK // max(1, len(differences)))
        sizes = [min(rows, how.samples - start) for start in range(0, how.samples, rows)]
        for size in sizes:
            signs = rng.integers(0, 2, (size, len(differences)), np.int8).astype(np.float64)
            count += _as_far(2 * (signs @ differences) - totals, totals, differences).sum(axis=0)
        drawn = np.asarray((count + 1) / (how.samples + 1))
    found = [SignFlips(p, False) for p in drawn.tolist()]
    for column in np.flatnonzero(few):
        first, *rest = differences[differences[:, column] != 0, column].tolist() or [0.0]
        sums = np.array([first])  # of half of all assignments: the other half has the same with the other sign
        for one in rest:
            sums = np.concatenate([sums + one, sums - one])  # doubles
        each = differences[:, column]
        found[column] = SignFlips(float(_as_far(sums, each.sum(), each).mean()), True)
    return found


def _as_far(drawn: Any, observed: Any, differences: Reals) -> Any:
    """Which drawn sums are as far from 0 as the observed one, up to the rounding of sums."""
    return np.abs(drawn) >= np.abs(observed) - TINY * np.abs(differences).sum(axis=0)


# -- many tests ---------------------------------------------------------------------------------------------


def corrected(ps: Sequence[float], correction: str = "holm") -> list[float]:
    """The p of many tests, each so that all together hold the level, by Holm's steps (1979); or as they are (none)."""
    if correction not in CORRECTIONS:
        raise UsageError(f"the correction is one of {', '.join(CORRECTIONS)}, not {correction!r}")
    p = np.array(ps, np.float64)
    if correction == "holm":
        order = np.argsort(p, kind="stable")
        p[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(one) for one in p]
