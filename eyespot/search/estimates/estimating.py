"""Verdicts on the planned units to what is known of each group: numbers, shares, rates, and which groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics import corrected
from eyespot.search.calibration import Accuracy, _chain, assisted, fit
from eyespot.search.calibration.curve import DRAWS, LEVEL, Interval
from eyespot.search.estimates.pairs import ALIKE, GroupPair, advised, bands, surest
from eyespot.search.estimates.planning import UNKNOWN, GroupPlan
from eyespot.search.estimates.shared import shared_draws
from eyespot.search.estimates.wording import FEWEST, Study, advice, methods
from eyespot.types import UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

ENOUGH = 20  # from here on an interval is never borrowed
ADVISED = 30  # looks in a group before further ones are advised
ASSISTED = 30  # verdicts in a group before a model's answers may narrow its interval
STRICT_DRAWS = 10_000  # Holm's rule asks for the far tails
TRUSTED = Accuracy()
NOTHING = Interval(nan, nan, nan)
OWN, BORROWED, WHOLE, NONE = "own", "borrowed", "whole", ""


@dataclass(frozen=True)
class GroupEstimate:
    """What is known of one group.

    Of its `units`, `judged` have a verdict and `yes` a yes; `skipped` were planned and have none. `relevant` is the
    number of relevant units in the collection, `share` that number as part of `effort` units, which are all ranked ones
    if nothing else was chosen, `rate` the share among endlessly many photos taken like these. `together` is the share
    again, in a band that holds for all groups at once. `beyond` counts units below the depth that was looked at: any
    number of them may be relevant. `basis` says what the interval rests on: the group alone (`own`), all groups
    (`borrowed`), or a look at every unit (`whole`). It is empty below eight looks: then the ends are what is certain,
    and there is no median.
    """

    label: Any
    units: int
    judged: int
    yes: int
    skipped: int
    basis: str
    relevant: Interval
    share: Interval
    rate: Interval
    together: Interval
    beyond: int = 0
    effort: int = 0

    @property
    def sentence(self) -> str:
        """The result of the group, in words."""
        if not self.judged:
            return "no photos" if not self.units else "not looked at"
        if not self.basis:
            return f"{self.yes} of {self.judged} looked at {'is' if self.yes == 1 else 'are'} relevant (no interval)"
        among = f"the first {self.units - self.beyond:,}" if self.beyond else f"{self.units:,}"
        if self.basis == WHOLE and self.relevant.low == self.relevant.high:
            return f"{self.relevant.low:,} of {among}, all looked at"
        if not self.yes:
            return f"none seen in {self.judged} looks: at most {self.relevant.high:,} of {among} (97.5 %)"
        ends = f"{self.relevant.low:,} to {self.relevant.high:,}"
        return f"{self.relevant.median:,} of {among} ({ends}), {self.yes} of {self.judged} looked at"


@dataclass(frozen=True, eq=False)
class GroupedEstimate:
    """The answer: `groups` by their labels, `pairs` of all groups with intervals, `advice` and `methods` in words."""

    plan: GroupPlan
    groups: dict[Any, GroupEstimate]
    pairs: tuple[GroupPair, ...]
    rule: str  # by which pairs are claimed: "pointwise", "agreement" or "strict"
    accuracy: Accuracy = TRUSTED
    study: Study | None = None

    @property
    def advice(self) -> tuple[str, ...]:
        """What limits the answer, and what would make it better."""
        return advice(self)

    @property
    def methods(self) -> str:
        """The paragraph for a paper."""
        return methods(self)

    def compare(self, first: Any, second: Any) -> GroupPair:
        """Two groups that were named before anybody judged; `UsageError` for one without an interval."""
        for pair in self.pairs:
            if {pair.first, pair.second} == {first, second}:
                return pair if pair.first == first else pair.turned
        why = "; ".join(f"{label}: {self.groups[label].sentence}" for label in (first, second) if label in self.groups)
        raise UsageError(f"{first} and {second} cannot be compared ({why or 'no such groups'}); judge more of both")


def estimate(
    plan: GroupPlan,
    verdicts: Any,
    *,
    accuracy: Accuracy = TRUSTED,
    borrow: bool = False,
    strict: bool = False,
    answers: Any = None,
) -> GroupedEstimate:
    """The answer from verdicts (looks,) on `plan.units`: 0, 1, or NaN for none.

    `borrow` lets groups with 8 to 19 looks use a curve of all groups, `strict` claims differences by Holm's rule.
    `answers` (units,) of a model, 0 to 1 in rank order, NaN for none, narrow the intervals of groups with 30 verdicts
    where they help. Raises `UsageError` for verdicts that do not fit the plan.
    """
    given = np.asarray(verdicts, np.float64).reshape(-1)
    if len(given) != len(plan.units) or not np.isin(given[~np.isnan(given)], (0, 1)).all():
        raise UsageError(f"the plan takes {len(plan.units)} verdicts, each 0, 1, or NaN for none")
    work = _GroupDraws(plan, given, accuracy, STRICT_DRAWS if strict else DRAWS)
    alone = {at: work.draws(at, answers) for at in range(len(plan.labels)) if work.known(at)}
    compared = [at for at in alone if plan.labels[at] != UNKNOWN]
    rule = "strict" if strict else "agreement" if len(compared) > 2 and not plan.compare else "pointwise"
    lent = [at for at in alone if FEWEST <= work.judged[at] < ENOUGH and not work.whole(at)] if borrow else []
    pairs = work.pairs(compared, alone, rule)
    alone |= {at: work.shared[at] for at in lent}
    groups = [work.group(at, alone.get(at), at in lent) for at in range(len(plan.labels))]
    if alone:
        ends = bands(np.stack(list(alone.values())), work.within[list(alone)])
        for at, low, high in zip(alone, *ends.tolist(), strict=True):
            one = groups[at]
            band = Interval(one.relevant.median, low, high + one.beyond).over(one.effort)
            groups[at] = replace(one, together=band)
    return GroupedEstimate(plan, {one.label: one for one in groups}, pairs, rule, accuracy)


class _GroupDraws:
    """The verdicts of a plan, by group."""

    def __init__(self, plan: GroupPlan, verdicts: Reals, accuracy: Accuracy, draws: int) -> None:
        seen = ~np.isnan(verdicts)
        self.plan, self.accuracy, self.size = plan, accuracy, draws
        self.units, self.verdicts = plan.units[seen], verdicts[seen]
        self.of = plan.group[self.units]
        number = len(plan.labels)
        self.judged = np.bincount(self.of, minlength=number)
        self.yes = np.bincount(self.of, self.verdicts, number).astype(np.int64)
        self.skipped = np.bincount(plan.group[plan.units], minlength=number) - self.judged
        self.within = np.minimum(plan.sizes, plan.depth or len(plan.group))

    def whole(self, at: int) -> bool:
        """Whether every unit of a group that may be drawn has a verdict."""
        return bool(0 < self.within[at] == self.judged[at])

    def known(self, at: int) -> bool:
        """Whether a group has an interval."""
        return bool(self.judged[at] >= FEWEST) or self.whole(at)

    def draws(self, at: int, answers: Any) -> Ints:
        """Draws of a group's relevant units by its ranks alone, (draws,), in random order."""
        plan, mine, rng = self.plan, self.of == at, np.random.default_rng([self.plan.seed, 1, at])
        if self.whole(at) and self.accuracy.exact:
            return np.full(self.size, self.yes[at])
        sample, hits = plan.sample(at, self.units[mine]), int(self.within[at])
        seed = int(rng.integers(2**31))
        curve = fit(-np.arange(hits), sample, self.verdicts[mine], self.accuracy, seed, draws=self.size)
        if answers is not None and self.judged[at] >= ASSISTED:
            of_model = np.asarray(answers, np.float64)[plan.members[at][:hits]]
            curve = assisted(curve, of_model).curve
        counts = curve.counts(hits)  # an assisted curve has DRAWS of them, whatever `size` is
        return rng.permutation(np.resize(counts, self.size))

    @cached_property
    def shared(self) -> Ints:
        """Draws of each group's relevant units by one curve of all groups, (groups, draws)."""
        plan, cells = self.plan, _chain.cells(len(self.plan.group))
        tables = np.zeros((3, len(plan.labels), int(cells[-1]) + 1), np.int64)
        free = plan.ranks <= (plan.depth or len(plan.group))
        np.add.at(tables[0], (plan.group[free], cells[free]), 1)
        np.add.at(tables[1], (self.of, cells[self.units]), 1)
        np.add.at(tables[2], (self.of, cells[self.units]), self.verdicts.astype(np.int64))
        rng, hits = np.random.default_rng([plan.seed, 2]), len(plan.group)
        return shared_draws(
            (tables[0], tables[1], tables[2]), hits=hits, accuracy=self.accuracy, draws=self.size, rng=rng
        )

    # -- groups ---------------------------------------------------------------------------------------------

    def rate(self, at: int, counts: Ints, beyond: int = 0) -> Reals:
        """Draws of the share among endlessly many photos taken like these, one for each count."""
        rng = np.random.default_rng([self.plan.seed, 3, at])
        others = self.plan.effort[at] - self.plan.sizes[at]
        return rng.beta(counts + beyond + 0.5, self.within[at] + others - counts + 0.5)

    def group(self, at: int, counts: Ints | None, borrowed: bool) -> GroupEstimate:
        """What is known of a group; `counts` are draws of its relevant units, None below eight looks."""
        units, judged, yes = int(self.plan.sizes[at]), int(self.judged[at]), int(self.yes[at])
        beyond = units - int(self.within[at]) if judged else 0
        how = {"units": units, "judged": judged, "yes": yes, "skipped": int(self.skipped[at]), "beyond": beyond}
        label, effort = self.plan.labels[at], int(self.plan.effort[at])
        how["effort"] = effort
        if counts is None:
            exact = self.accuracy.exact
            certain = Interval(nan, yes if exact else 0, units - (judged - yes if exact else 0))
            share, rate = (certain.over(effort), Interval(nan, 0, 1)) if effort else (NOTHING, NOTHING)
            return GroupEstimate(label, **how, basis=NONE, relevant=certain, share=share, rate=rate, together=share)
        relevant = Interval.of(counts)
        if not yes and self.accuracy.exact:
            relevant = replace(relevant, low=0)
        share = replace(relevant, high=relevant.high + beyond).over(effort)
        rate = Interval.of(self.rate(at, counts))
        if beyond:  # any number of those may be relevant
            rate = Interval(share.median, min(share.low, rate.low), Interval.of(self.rate(at, counts, beyond)).high)
        basis = WHOLE if self.whole(at) and not beyond else BORROWED if borrowed else OWN
        return GroupEstimate(label, **how, basis=basis, relevant=relevant, share=share, rate=rate, together=share)

    # -- pairs ----------------------------------------------------------------------------------------------

    def pairs(self, compared: Sequence[int], alone: dict[int, Ints], rule: str) -> tuple[GroupPair, ...]:
        """All pairs of these groups whose ranks were looked at as deep, and which of them are claimed by the rule."""
        deep = self.within / np.maximum(self.plan.sizes, 1)
        named = [pair for pair in combinations(compared, 2) if max(deep[[*pair]]) <= ALIKE * min(deep[[*pair]])]
        if not named:
            return ()
        rates = {at: self.rate(at, alone[at]) for at in compared}
        deltas = [rates[g] - rates[h] for g, h in named]
        apart = np.array([Interval.of(delta).apart for delta in deltas])
        claims = apart
        if rule == "agreement" and apart.any():
            lent = {at: self.rate(at, self.shared[at]) for at in compared}
            claims = surest(apart, np.array([lent[g] - lent[h] for g, h in named]))
        elif rule == "strict":
            tails = [2 * min((delta <= 0).mean(), (delta >= 0).mean()) for delta in deltas]
            signs = np.array([np.sign(np.median(delta)) for delta in deltas]).astype(int)
            claims = np.where(np.array(corrected(tails)) <= 1 - LEVEL, signs, 0)
        return tuple(
            self._pair(pair, rates, alone, (one, claim))
            for pair, one, claim in zip(named, apart.tolist(), claims.tolist(), strict=True)
        )

    def _pair(
        self, pair: tuple[int, int], rates: dict[int, Reals], alone: dict[int, Ints], claims: tuple[int, int]
    ) -> GroupPair:
        (g, h), both = pair, [*pair]
        ratio = Interval.of(rates[g] / rates[h])
        if not (self.yes[g] and self.yes[h]):  # no end on the side of what was not seen
            none = not self.yes[g], not self.yes[h]
            ratio = Interval(nan, 0.0 if none[0] else ratio.low, inf if none[1] else ratio.high)
        needed = None
        if min(self.judged[both]) >= ADVISED and not claims[1]:
            share = np.stack([alone[at] / self.plan.effort[at] for at in both])
            needed = advised(share, self.plan.sizes[both], self.judged[both])
        difference = Interval.of(rates[g] - rates[h])
        return GroupPair(self.plan.labels[g], self.plan.labels[h], difference, ratio, *claims, needed)
