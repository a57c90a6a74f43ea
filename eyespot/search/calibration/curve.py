"""Verdicts on some hits to what is known of all: probabilities, counts with intervals, a cut-off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.search.calibration import _chain
from eyespot.search.calibration.accuracy import Accuracy
from eyespot.search.calibration.sampling import RankSample
from eyespot.types import NothingFound, UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

DRAWS = 2000  # of what may be so; another seed moves a bound by a few of a thousand draws
LEVEL = 0.95
NONE = 1e-12  # of a variance: what nobody doubts is still not divided by


@dataclass(frozen=True)
class Interval:
    """A median and the ends of a 95 % interval, 2.5 % beyond either."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: NDArray[Any]) -> Interval:
        """That of draws (n,): whole numbers stay whole."""
        ordered = np.sort(draws)
        outside = int((1 - LEVEL) / 2 * len(ordered))
        return cls(*(ordered[at].item() for at in (len(ordered) // 2, outside, -1 - outside)))

    def over(self, total: int) -> Interval:
        """Each bound as a share of this total."""
        return Interval(self.median / total, self.low / total, self.high / total)

    @property
    def apart(self) -> int:
        """1 where the interval is above 0, -1 where it is below, else 0."""
        return int(self.low > 0) - int(self.high < 0)


class Count(NamedTuple):
    """How many hits are relevant: the expected number, a 95 % interval with 2.5 % on either side, and the median.

    Of a long ranking with few verdicts the expected number is held up by the little that speaks for very many; the
    median, as likely too low as too high, is the one to show.
    """

    expected: float
    low: int
    high: int
    median: int


class Cut(NamedTuple):
    """Show the first `hits`, down to `score`: their expected precision, and its 95 % interval."""

    hits: int
    score: float
    precision: float
    low: float
    high: float


@dataclass(frozen=True)
class HiddenHits:
    """Hits without a verdict that are told apart by more than their rank: how probable each is, and draws of them."""

    share: Reals  # (hits,)
    relevant: NDArray[np.bool_]  # (hits, draws), False for judged hits


@dataclass(frozen=True, eq=False)
class Curve:
    """What verdicts on some hits say of a ranking; `fit` makes one.

    `scores` (hits,) best first, `verdicts` (n,) on the hits of `sample`; `hidden` is what a covariate says besides of
    the hits without a verdict. Draws of what they leave possible: the share of each cell (cells, draws), its relevant
    hits without a verdict (cells, draws), and which judged hits are relevant (n, draws).
    """

    scores: Reals
    sample: RankSample
    verdicts: Reals
    accuracy: Accuracy
    seed: int
    cell_share: Reals
    unjudged: Ints
    judged: NDArray[np.bool_]
    hidden: HiddenHits | None = None

    @property
    def hits(self) -> int:
        """The length of the ranking."""
        return len(self.scores)

    @cached_property
    def share(self) -> Reals:
        """The share of relevant pictures around each rank, (hits,): what rank and covariate say of a hit."""
        if self.hidden is not None:
            return self.hidden.share
        return np.asarray(self.cell_share.mean(axis=1)[_chain.cells(self.hits)])

    @cached_property
    def probability(self) -> Reals:
        """How probable it is that each hit is relevant, (hits,): by its verdict where it has one, and by its rank."""
        probability = self.share.copy()
        probability[self.sample.ranks - 1] = self.judged.mean(axis=1)
        return probability

    def count(self, k: int | None = None) -> Count:
        """How many of the first k hits are relevant, or of all."""
        k = self.within(k)
        ends = Interval.of(self.counts(k))
        return Count(float(self.probability[:k].sum()), int(ends.low), int(ends.high), int(ends.median))

    def likely(self, precision: float) -> Cut:
        """The longest beginning of the ranking whose expected precision (0 to 1) is so high.

        Raises `NothingFound` where not even the first hits are expected to be that good.
        """
        if not 0 < precision <= 1:
            raise UsageError(f"a precision of {precision} cannot be asked for; choose one above 0 and up to 1")
        expected = np.cumsum(self.probability) / np.arange(1, self.hits + 1)  # (hits,)
        enough = np.flatnonzero(expected >= precision)
        if not len(enough):
            raise NothingFound(f"no first hits are expected to reach a precision of {precision:g}; ask for a lower one")
        k = int(enough[-1]) + 1
        ends = Interval.of(self.counts(k)).over(k)
        return Cut(k, float(self.scores[k - 1]), float(expected[k - 1]), ends.low, ends.high)

    def joined(self, ranks: Any, verdicts: Any) -> Curve:
        """The curve with verdicts on further ranks."""
        sample = self.sample.joined(np.asarray(ranks, np.int64))
        both = np.concatenate([self.verdicts, np.asarray(verdicts, np.float64)])
        return fit(self.scores, sample, both, self.accuracy, self.seed)

    def within(self, k: int | None) -> int:
        """How many hits the first k are: all for None. `UsageError` for a k beyond the ranking or below 1."""
        if k is not None and not 1 <= k <= self.hits:
            raise UsageError(f"the first {k} hits cannot be counted; the ranking has {self.hits}")
        return k or self.hits

    def counts(self, k: int) -> Ints:
        """How many of the first k are relevant in each draw of what may be so, (draws,), in no random order."""
        judged = self.judged[self.sample.ranks <= k].sum(axis=0)
        if self.hidden is not None:
            return np.asarray(judged + self.hidden.relevant[:k].sum(axis=0))
        cell = int(_chain.cells(k)[-1])
        whole = self.unjudged[:cell].sum(axis=0)
        # How many hits without a verdict are relevant in a cell up to rank k, (draws,)
        free = np.ones(self.hits, dtype=bool)
        free[self.sample.ranks - 1] = False
        free &= _chain.cells(self.hits) == cell
        relevant = self.unjudged[cell]
        rng = np.random.default_rng([self.seed, k])
        begun: Ints = rng.hypergeometric(relevant, int(free.sum()) - relevant, int(free[:k].sum()))
        return np.asarray(judged + whole + begun)


def fit(
    scores: Any,
    sample: RankSample,
    verdicts: Any,
    accuracy: Accuracy = Accuracy(),
    seed: int = 0,
    *,
    draws: int = DRAWS,
) -> Curve:
    """The curve of one query's ranking.

    `scores` (hits,), best first; `verdicts` (n,) on the hits of `sample`: 0, 1, or the probability that the hit is
    relevant, and NaN where the judge gave none; `draws` of what may be so. The same seed gives the same curve. Raises
    `UsageError` for scores that do not descend, verdicts that do not fit the sample, and no verdict at all.
    """
    scores = np.asarray(scores, dtype=np.float64).reshape(-1)
    if not len(scores) or not np.isfinite(scores).all() or (np.diff(scores) > 0).any():
        raise UsageError("scores are finite numbers, best first, and at least one; sort the ranking before")
    verdicts = _checked_verdicts(verdicts, sample)
    if len(scores) != sample.hits:
        raise UsageError(f"the sample is of a ranking of {sample.hits} hits, not of these {len(scores)}")
    answered = ~np.isnan(verdicts)
    sample, verdicts = RankSample(sample.edges, sample.ranks[answered]), verdicts[answered]
    rng = np.random.default_rng(seed)
    models: list[_chain.ChainModel] = []
    likelihoods = accuracy.likelihoods(verdicts, rng)
    cell_share, cells = _chain.grid(sample.hits).share, _chain.cells(sample.hits)
    for possible in likelihoods:
        each = np.log(np.outer(possible[:, 0], cell_share) + np.outer(possible[:, 1], 1 - cell_share))  # (n, states)
        logs = np.zeros((int(cells[-1]) + 1, len(cell_share)))
        np.add.at(logs, cells[sample.ranks - 1], each)
        models += _chain.models(sample.hits, logs, possible)
    parts = [_drawn(sample, model, n, rng) for model, n in _chain.apportioned(models, draws, rng)]
    share, unjudged, judged = (np.concatenate(column, axis=1) for column in zip(*parts, strict=True))
    return Curve(scores, sample, verdicts, accuracy, seed, cell_share=share, unjudged=unjudged, judged=judged)


def _checked_verdicts(given: Any, sample: RankSample) -> Reals:
    verdicts: Reals = np.asarray(given, dtype=np.float64).reshape(-1)
    if len(verdicts) != len(sample.ranks):
        raise UsageError(f"{len(verdicts)} verdicts do not fit {len(sample.ranks)} judged hits; NaN stands for none")
    if np.isnan(verdicts).all():
        raise UsageError("there is no verdict to calibrate by; judge some hits first")
    if ((verdicts < 0) | (verdicts > 1)).any():
        raise UsageError("a verdict is 0, 1, or a probability between them")
    return verdicts


# -- the posterior ------------------------------------------------------------------------------------------


def _drawn(
    sample: RankSample, model: _chain.ChainModel, draws: int, rng: np.random.Generator
) -> tuple[Reals, Ints, NDArray[np.bool_]]:
    """Draws of a model, which is given how likely each verdict is for a relevant and for an irrelevant hit, (n, 2)."""
    cells = _chain.cells(sample.hits)
    states = _chain.sampled(model, draws, rng)
    share = _chain.grid(sample.hits).share[states]  # (cells, draws)
    of_judged = cells[sample.ranks - 1]  # (n,)
    free = np.bincount(cells, minlength=len(share)) - np.bincount(of_judged, minlength=len(share))
    relevant = model.given[:, :1] * share[of_judged]  # (n, draws)
    probability = relevant / (relevant + model.given[:, 1:] * (1 - share[of_judged]))
    return share, rng.binomial(free[:, None], share), rng.random(probability.shape) < probability


def next_ranks(curve: Curve, n: int, k: int | None = None) -> Ints:
    """The n ranks to judge next, ascending, or fewer where fewer are left; `Curve.joined` takes their verdicts.

    Each verdict goes to the stratum where it is expected to lessen the variance of `count(k)` most; within the stratum
    every hit without a verdict has the same chance, also one beyond k. A stratum counts as known by its own verdicts
    and one more at most, so that its neighbours do not starve it. Raises `UsageError` for an n below 0.
    """
    if n < 0:
        raise UsageError("the number of further verdicts is 0 or more")
    # How many more hits of each stratum to judge, (strata,): one at a time to where it is worth most
    unjudged = np.setdiff1d(np.arange(1, curve.within(k) + 1), curve.sample.ranks)
    free = np.bincount(curve.sample.stratum_of(unjudged), minlength=len(curve.sample.sizes))  # (strata,)
    # How many of these ranks lie in each cell of each stratum, (strata, cells)
    cells = _chain.cells(curve.hits)
    weight = np.zeros((len(curve.sample.sizes), int(cells[-1]) + 1))
    np.add.at(weight, (curve.sample.stratum_of(unjudged), cells[unjudged - 1]), 1.0)
    shares = weight @ curve.cell_share / np.maximum(weight.sum(axis=1), 1)[:, None]  # (strata, draws)
    mean, taken = shares.mean(axis=1), curve.sample.taken  # (strata,)
    # What a verdict of this judge tells of a share, as a part of what a perfect one would, (strata,)
    yes = curve.accuracy.sensitivity * mean + (1 - curve.accuracy.specificity) * (1 - mean)
    each = curve.accuracy.lift**2 * mean * (1 - mean) / np.maximum(yes * (1 - yes), NONE)
    spread = np.maximum(mean * (1 - mean), NONE)  # of one picture
    known = np.minimum(spread / np.maximum(shares.var(axis=1), NONE), taken * each + 1)  # verdicts that it is worth
    judged = curve.sample.stratum_of(curve.sample.ranks)
    relevant = np.bincount(judged, curve.accuracy.corrected(curve.verdicts), len(taken))
    seen = (np.clip(relevant, 0, taken) + 0.5) / (taken + 1)  # by the stratum's own verdicts, with Jeffreys' prior
    spread = np.maximum(spread, seen * (1 - seen))
    wanted = np.zeros_like(free)
    for _ in range(min(n, len(unjudged))):
        sure = known + wanted * each
        gain = weight.sum(axis=1) ** 2 * spread * (1 / sure - 1 / (sure + each))
        wanted[np.argmax(np.where(wanted < free, gain, -1))] += 1
    rng = np.random.default_rng([curve.seed, len(curve.sample.ranks), n])
    return curve.sample.drawn(wanted, rng)
