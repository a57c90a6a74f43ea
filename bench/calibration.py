"""Does a 95 % interval for the number of relevant pictures hold the true number 95 times in 100?

Rankings of known truth are calibrated from a few dozen verdicts, many times with fresh random draws. Real ones: the 59
queries of inquire_rerank_hard with their 100 labelled candidates, as given (an order without information) and in the
order of a simulated score with some. Made ones: 10,000 hits of many shapes, some chosen to mislead. The judge is right,
or errs at a known rate, or at a rate that was itself measured on 50 + 50 pictures.

Look-alikes: rankings of 1,000 hits whose first 20 to 200 are hardly relevant, and the rest more, asked for in rounds as
`search --calibrate` does, and planned at once; with them the lists of INQUIRE-Search that experts marked. Each shape is
measured by itself.

The peer is what textbooks do with the same sample and no curve: a beta-binomial posterior with Jeffreys' prior in each
stratum, added up. A ratio is our mean width over the peer's; the goal is the coverage in `between`.

Then a person's verdicts with a model's answers as covariate, for every kind of judge that `eyespot judges list` names,
each right, erring in 15 of 100 cases either way, or that and overconfident. The peer is the same count by people alone.

    python bench/calibration.py [--quick] [--json] [--verdicts 30] [--only look-alikes]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import Command, Measurement, Reals, judges, say
from bench.harness.rankings import (
    HITS,
    Labels,
    by_signal,
    labelled_rankings,
    look_alikes,
    made_rankings,
    marked_lists,
)
from eyespot.search.calibrated import sizes
from eyespot.search.calibration import HELPED, Accuracy, Curve, RankSample, assisted, fit, next_ranks, plan
from eyespot.types import NothingFound

PEER = "stratified beta-binomial"
RIGHT, ERRING = Accuracy(), Accuracy(0.9, 0.85)
JUDGES = {"right": RIGHT, "errs 10/15 %": ERRING, "errs, measured on 50+50": Accuracy(0.9, 0.85, 50, 50)}
LOWEST, HIGHEST = 0.92, 0.98  # three points of nominal, over the labelled queries
# An order with information makes intervals safe rather than exact: .982 with 30 verdicts of a right judge.
GOALS = {"as given": (LOWEST, HIGHEST), "by a score": (LOWEST, 1.0)}
ANY = (0.0, 1.0)  # one shape of ranking among many has no goal of its own


class Trial(NamedTuple):
    """One calibration: was the truth in the interval, was it above, how wide was it; the peer's; means."""

    held: bool
    above: bool
    width: float
    peer_held: bool
    peer_width: float
    expected: float
    median: float
    true: int


@dataclass(frozen=True, kw_only=True)
class CalibratedInterval(Measurement):
    """Shares of trials, and means over them in pictures."""

    coverage: float
    above: float  # trials in which the truth was above the interval
    width: float
    true: float
    expected: float
    median: float
    peer_coverage: float
    between: tuple[float, float]  # the coverage that is the goal

    @property
    def met(self) -> bool:
        return self.between[0] <= self.coverage <= self.between[1]

    def __str__(self) -> str:
        return (
            f"{self.name}: coverage {self.coverage:.3f} (above {self.above:.3f}), width {self.width:.1f} = "
            f"{self.ratio:.2f} of the peer's, which covers {self.peer_coverage:.3f}; true {self.true:.1f}, expected "
            f"{self.expected:.1f}, median {self.median:.1f}; {'met' if self.met else 'MISSED'}"
        )


# -- trials -------------------------------------------------------------------------------------------------------


def verdicts_of(judge: Accuracy, labels: Labels, rng: np.random.Generator) -> Reals:
    """1 for yes and 0 for no, by a judge of this accuracy."""
    yes = np.where(labels == 1, judge.sensitivity, 1 - judge.specificity)
    return (rng.random(len(labels)) < yes).astype(np.float64)


def estimated_accuracy(judge: Accuracy, rng: np.random.Generator) -> Accuracy:
    """The accuracy as a test on as many pictures as it was measured on would estimate it."""
    if judge.relevant is None or judge.irrelevant is None:
        return judge
    right = rng.binomial(judge.relevant, judge.sensitivity), rng.binomial(judge.irrelevant, judge.specificity)
    return Accuracy(right[0] / judge.relevant, right[1] / judge.irrelevant, judge.relevant, judge.irrelevant)


def trial(labels: Labels, judge: Accuracy, rounds: list[int], seed: list[int]) -> Trial:
    """Verdicts of a judge: the first round is planned, each further one goes where the curve sends it."""
    rng = np.random.default_rng(seed)
    sample = plan(len(labels), rounds[0], int(rng.integers(2**31)))
    answers = verdicts_of(judge, labels, rng)  # (hits,), all that it would say
    accuracy = estimated_accuracy(judge, rng)
    curve = fit(-np.arange(len(labels)), sample, answers[sample.ranks - 1], accuracy, int(rng.integers(2**31)))
    for size in rounds[1:]:
        ranks = next_ranks(curve, size)
        curve = curve.joined(ranks, answers[ranks - 1])
    true, (expected, low, high, median) = int(labels.sum()), curve.count()
    peer = peer_interval(curve.sample, curve.verdicts, rng)
    return Trial(
        low <= true <= high, true > high, high - low,
        peer[0] <= true <= peer[1], peer[1] - peer[0], expected, median, true,
    )  # fmt: skip


def peer_interval(sample: RankSample, answers: Reals, rng: np.random.Generator) -> tuple[float, float]:
    """Each stratum on its own, with every verdict taken as right."""
    stratum = sample.stratum_of(sample.ranks)
    yes = np.bincount(stratum, weights=answers, minlength=len(sample.sizes))[:, None]
    taken = sample.taken[:, None]
    share = rng.beta(yes + 0.5, taken - yes + 0.5, size=(len(yes), 2000))
    total = (yes + rng.binomial(sample.sizes[:, None] - taken, share)).sum(axis=0)
    low, high = np.quantile(total, (0.025, 0.975), method="inverted_cdf")
    return float(low), float(high)


def interval(name: str, trials: list[Trial], goal: tuple[float, float]) -> CalibratedInterval:
    mean = Trial(*np.mean(trials, axis=0).tolist())
    ratio = mean.width / mean.peer_width
    return CalibratedInterval(
        name, ratio, PEER, ratio, ratio, len(trials),
        coverage=mean.held, above=mean.above, width=mean.width, true=mean.true, expected=mean.expected,
        median=mean.median, peer_coverage=mean.peer_held, between=goal,
    )  # fmt: skip


def on_labels(seeds: int, verdicts: int) -> Iterator[CalibratedInterval]:
    queries = labelled_rankings()
    for order, distance in {"as given": 0.0, "by a score": 1.5}.items():
        for name, judge in JUDGES.items():
            trials = [
                trial(in_order(labels, distance, [seed, at]), judge, [verdicts], [seed, at, 1])
                for seed in range(seeds)
                for at, labels in enumerate(queries)
            ]
            yield interval(f"59 queries {order}, judge {name}", trials, GOALS[order])


def in_order(labels: Labels, distance: float, seed: list[int]) -> Labels:
    return by_signal(labels, distance, np.random.default_rng(seed)) if distance else labels


def on_made(seeds: int, verdicts: int) -> Iterator[CalibratedInterval]:
    for judge in ("right", "errs 10/15 %"):
        trials: dict[str, list[Trial]] = {}
        for seed in range(seeds):
            for at, (name, labels) in enumerate(made_rankings(np.random.default_rng([seed, 9])).items()):
                trials.setdefault(name, []).append(trial(labels, JUDGES[judge], [verdicts], [seed, at, 2]))
        for name, of_ranking in trials.items():
            yield interval(f"{name}, judge {judge}", of_ranking, ANY)
        everything = [one for of_ranking in trials.values() for one in of_ranking]
        yield interval(f"all made rankings, judge {judge}", everything, (LOWEST, 1.0))


LEAST_OF_EACH = 0.88  # shape of look-alikes


def on_look_alikes(seeds: int) -> Iterator[CalibratedInterval]:
    """Each shape by itself, then all of them; the lists that experts marked, all of them."""
    marked = marked_lists()
    for verdicts in (40, 64, 100):
        for way, rounds in {"in rounds": list(sizes(verdicts)), "at once": [verdicts]}.items():
            trials: dict[str, list[Trial]] = {}
            for seed in range(seeds):
                for at, (name, labels) in enumerate(look_alikes(np.random.default_rng([seed, 7])).items()):
                    trials.setdefault(name, []).append(trial(labels, RIGHT, rounds, [seed, at, 8]))
            for name, of_shape in trials.items():
                yield interval(f"{name}, {verdicts} {way}", of_shape, (LEAST_OF_EACH, 1.0))
            everything = [one for of_shape in trials.values() for one in of_shape]
            yield interval(f"all look-alikes, {verdicts} {way}", everything, (LOWEST, 1.0))
            lists = [
                trial(labels, RIGHT, rounds, [seed, at, 9])
                for seed in range(max(1, seeds // 10))
                for at, labels in enumerate(marked)
            ]
            yield interval(f"{len(marked)} marked lists, {verdicts} {way}", lists, (LOWEST, 1.0))


# -- what else the curve gives -------------------------------------------------------------------------------------


class Reliability(NamedTuple):
    """Of each bin that has hits where it begins, how many it has, their mean probability and the relevant share."""

    low: Reals
    hits: NDArray[np.int64]
    predicted: Reals
    observed: Reals

    @property
    def error(self) -> float:
        """The expected calibration error (ECE): the mean over hits of |observed - predicted| of their bin."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.hits))


def reliability(probability: Reals, relevant: Reals, bins: int = 10) -> Reliability:
    """Probabilities (n,) against labels (n,) that the calibration did not see: of hits with .7 seven in ten hold."""
    which = np.minimum((probability * bins).astype(np.int64), bins - 1)
    used, at, hits = np.unique(which, return_inverse=True, return_counts=True)
    return Reliability(used / bins, hits, np.bincount(at, probability) / hits, np.bincount(at, relevant) / hits)


def more(seeds: int, verdicts: int) -> Iterator[str]:
    """Lines on reliability, cut-offs and where verdicts go."""
    curves = list(fitted(seeds, verdicts))
    hidden = [np.setdiff1d(np.arange(100), curve.sample.ranks - 1) for curve, _ in curves]
    pairs = zip(curves, hidden, strict=True)
    probability = np.concatenate([curve.probability[rows] for (curve, _), rows in pairs])
    labels = np.concatenate([labels[rows] for (_, labels), rows in zip(curves, hidden, strict=True)])
    table = reliability(probability, labels)
    yield f"hits without a verdict: {len(labels)}, expected calibration error {table.error:.4f}"
    for low, hits, predicted, observed in zip(table.low, table.hits, table.predicted, table.observed, strict=True):
        yield f"  from {low:.1f}: {hits:6d} hits, predicted {predicted:.3f}, relevant {observed:.3f}"
    for precision in (0.3, 0.5, 0.7):
        yield cuts(curves, precision)
    yield spending(seeds, verdicts)


def fitted(seeds: int, verdicts: int) -> Iterator[tuple[Curve, Labels]]:
    for seed in range(seeds):
        for at, given in enumerate(labelled_rankings()):
            labels = in_order(given, 1.5, [seed, at])
            sample = plan(100, verdicts, seed)
            yield fit(-np.arange(100), sample, labels[sample.ranks - 1], RIGHT, seed), labels


def cuts(curves: list[tuple[Curve, Labels]], precision: float) -> str:
    held, expected, true = [], [], []
    for curve, labels in curves:
        try:
            cut = curve.likely(precision)
        except NothingFound:
            continue
        true.append(labels[: cut.hits].mean())
        expected.append(cut.precision)
        held.append(cut.low <= true[-1] <= cut.high)
    return (
        f"cut for a precision of {precision}: in {len(held)} of {len(curves)} rankings; expected "
        f"{np.mean(expected):.3f}, true {np.mean(true):.3f}, interval held it in {np.mean(held):.3f}"
    )


def spending(seeds: int, verdicts: int) -> str:
    """The width of the interval with twice the verdicts: all planned at once, or half where the curve sends them."""
    planned, sent, held = [], [], []
    for seed in range(seeds):
        for labels in made_rankings(np.random.default_rng([seed, 9])).values():
            scores, both = -np.arange(HITS), plan(HITS, 2 * verdicts, seed)
            count = fit(scores, both, labels[both.ranks - 1], RIGHT, seed).count()
            planned.append(count.high - count.low)
            first = plan(HITS, verdicts, seed)
            curve = fit(scores, first, labels[first.ranks - 1], RIGHT, seed)
            for _ in range(2):
                ranks = next_ranks(curve, verdicts // 2)
                curve = curve.joined(ranks, labels[ranks - 1])
            count = curve.count()
            sent.append(count.high - count.low)
            held.append(count.low <= labels.sum() <= count.high)
    return (
        f"{2 * verdicts} verdicts on 10,000 hits: mean width {np.mean(planned):.0f} planned at once, "
        f"{np.mean(sent):.0f} with the second half sent (coverage {np.mean(held):.3f})"
    )


# -- a model beside a person --------------------------------------------------------------------------------------

FIRST = 16  # verdicts of the first round, as in a search
LEAST = 0.93  # of the intervals hold the truth, for each kind of judge
PAGE = 1000  # hits that a page speaks of


class CovariateTrial(NamedTuple):
    """Was the truth in the interval, and how wide was it: with the model, and by the person alone; did it help."""

    held: bool
    above: bool
    width: float
    alone_held: bool
    alone_width: float
    helped: bool


@dataclass(frozen=True, kw_only=True)
class CovariateInterval(Measurement):
    """Shares of trials, and mean widths in pictures; `alone` is without the model."""

    coverage: float
    above: float  # trials in which the truth was above the interval
    width: float
    alone_coverage: float
    alone_width: float
    helped: float
    least: float  # the coverage that is the goal

    @property
    def met(self) -> bool:
        return min(self.coverage, self.alone_coverage) >= self.least

    def __str__(self) -> str:
        return (
            f"{self.name}: coverage {self.coverage:.3f} (above {self.above:.3f}), alone {self.alone_coverage:.3f}; "
            f"width {self.width:.1f} = {self.ratio:.2f} of {self.alone_width:.1f} alone; helped in {self.helped:.2f} "
            f"of {self.n}; {'met' if self.met else 'MISSED'}"
        )


def covariate_trial(labels: Labels, answers: Reals, verdicts: int, rng: np.random.Generator) -> CovariateTrial:
    """A person's verdicts, in rounds as a search asks for them, are these labels."""
    first = plan(len(labels), min(FIRST, verdicts), int(rng.integers(2**31)))
    curve = fit(-np.arange(len(labels)), first, labels[first.ranks - 1], RIGHT, int(rng.integers(2**31)))
    more = next_ranks(curve, verdicts - len(first.ranks))
    found = assisted(curve.joined(more, labels[more - 1]), answers)
    count, alone, true = found.curve.count(), found.alone, int(labels.sum())
    return CovariateTrial(
        count.low <= true <= count.high, true > count.high, count.high - count.low,
        alone.low <= true <= alone.high, alone.high - alone.low, found.code == HELPED,
    )  # fmt: skip


def covariate_interval(name: str, trials: list[CovariateTrial], least: float) -> CovariateInterval:
    mean = CovariateTrial(*np.mean(trials, axis=0).tolist())
    ratio = mean.width / mean.alone_width
    return CovariateInterval(
        name, ratio, "people alone", ratio, ratio, len(trials),
        coverage=mean.held, above=mean.above, width=mean.width, alone_coverage=mean.alone_held,
        alone_width=mean.alone_width, helped=mean.helped, least=least,
    )  # fmt: skip


def page_rankings(seed: int) -> list[Labels]:
    """The first hits of each made ranking."""
    return [labels[:PAGE] for labels in made_rankings(np.random.default_rng([seed, 9])).values()]


def labelled_orders(seed: int) -> list[Labels]:
    """The 59 queries, as given and by a score."""
    queries = labelled_rankings()
    return queries + [in_order(labels, 1.5, [seed, at]) for at, labels in enumerate(queries)]


def with_models(seeds: int, verdicts: int) -> Iterator[CovariateInterval]:
    """Each kind of judge over all rankings, then all models over each kind of ranking."""
    kinds = judges.kinds()
    pools = {"59 queries, both orders": labelled_orders, f"made rankings of {PAGE:,}": page_rankings}
    for number, behaviour in enumerate(judges.BEHAVIOURS):
        of_pool: dict[str, list[CovariateTrial]] = {pool: [] for pool in pools}
        for kind in kinds:
            every: list[CovariateTrial] = []
            for where, (pool, rankings) in enumerate(pools.items()):
                trials = [
                    beside_a_person(labels, kind, behaviour, verdicts, [seed, at, number, kinds.index(kind), where, 5])
                    for seed in range(seeds)
                    for at, labels in enumerate(rankings(seed))
                ]
                every += trials
                of_pool[pool] += trials if kind != "person" else []
            yield covariate_interval(f"all rankings, {kind} {behaviour}", every, LEAST)
        for pool, trials in of_pool.items():
            yield covariate_interval(f"{pool}, any model {behaviour}", trials, LEAST)


def beside_a_person(labels: Labels, kind: str, behaviour: str, verdicts: int, seed: list[int]) -> CovariateTrial:
    """A model of this kind beside a person who is right; a person of this kind alone, whose own word is counted."""
    rng = np.random.default_rng(seed)
    answers = judges.ANSWERS[kind](labels, behaviour, rng)
    if kind == "person":
        return covariate_trial(answers.astype(np.int64), np.full(len(labels), np.nan), verdicts, rng)
    return covariate_trial(labels, answers, verdicts, rng)


def worst(seeds: int, verdicts: int) -> Iterator[CovariateInterval]:
    """Models whose errors depend on the place, which the fit does not foresee; no goal."""
    rankings = {(seed, at): labels for seed in range(seeds) for at, labels in enumerate(labelled_orders(seed))}
    trials: dict[str, list[CovariateTrial]] = {}
    for (seed, at), labels in rankings.items():
        half = np.arange(len(labels)) >= len(labels) // 2
        for number, name in enumerate(("says yes to all of the second half", "says no to it", "looked at 60 %")):
            rng = np.random.default_rng([seed, at, number, 6])
            answers = judges.ANSWERS["openai"](labels, judges.RIGHT, rng)
            if number == 2:
                answers[60:] = np.nan
            else:
                answers[half] = 0.95 - 0.9 * number
            trials.setdefault(name, []).append(covariate_trial(labels, answers, verdicts, rng))
    for name, of_model in trials.items():
        yield covariate_interval(f"59 queries, both orders, a model that {name}", of_model, 0.0)


PARTS = ("labels", "made", "look-alikes", "covariates", "worst", "more")


def measurements(options: Namespace) -> Iterator[Measurement]:
    seeds = 10 if options.quick else 100
    parts = options.only or PARTS
    if "labels" in parts:
        yield from on_labels(seeds, options.verdicts)
    if "made" in parts:
        yield from on_made(seeds, options.verdicts)
    if "look-alikes" in parts:
        yield from on_look_alikes(2 * seeds)
    if "covariates" in parts:
        yield from with_models(max(2, seeds // 20), options.verdicts)
    if "worst" in parts:
        yield from worst(max(2, seeds // 20), options.verdicts)
    for line in more(max(2, seeds // 10), options.verdicts) if "more" in parts else ():
        say(line)


if __name__ == "__main__":
    command = Command(__doc__, quick="a tenth of the draws")
    command.add_argument("--verdicts", type=int, default=30, help="on each ranking")
    command.add_argument("--only", choices=PARTS, action="append", help="this part; repeatable")
    command.run(measurements)
