"""A model's answers as a covariate: people's verdicts say what an answer is worth on this ranking.

`assisted` fits, by logistic regression along the curve of people's verdicts, how much likelier a hit is relevant the
higher the model's answer on it. An answer itself is not a verdict: it is cut nowhere, only the order of answers and
their distance count, and a model that tells nothing, or whose worth the verdicts cannot show, changes nothing.

The log-odds of a hit are those of its cell of ranks plus a multiple of its answer, which is exact where the model errs
independently of the rank. How large the multiple is, and on which of two scales answers are measured, is drawn together
with the curve; one half of the belief is that it is 0. So intervals hold what the verdicts leave open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyespot.search.calibration import _chain
from eyespot.search.calibration.curve import DRAWS, Count, Curve, HiddenHits

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

VERDICTS = 30  # of people, before a model may help
ANSWERED = 0.5  # of the hits that people judged, at least
FARTHEST = 10_000  # hits
# How much the log-odds differ between the lowest and the highest answer, and the belief in each: half a Cauchy
# distribution of scale 2.5, the default of Gelman et al. 2008 for logistic regression on an input of width 1
STRENGTHS = {1.5: 0.41, 3.0: 0.23, 4.5: 0.13, 6.0: 0.1, 8.0: 0.06, 10.0: 0.04, 12.0: 0.03}
NOTHING = 0.5  # the belief, before any verdict, that answers tell nothing
SURE = 0.8  # how probable it must be after the verdicts that they tell something
EDGE = 0.001  # answers nearer to 0 or 1 are taken as this far from it

HELPED = "helped"
FEW_VERDICTS = "few_verdicts"  # of people
FEW_ANSWERS = "few_answers"  # of the model, on hits that people judged
ONE_SIDED = "one_sided"  # people said only yes, or only no
CONSTANT = "constant"  # the model says the same of every hit
ERRING = "erring_people"  # somebody stated an accuracy for the verdicts
DEEP = "deep"  # more than FARTHEST hits
WIDER = "wider"  # answers count, and leave more open
NO_HELP = "no_help"  # answers tell nothing of the verdicts


@dataclass(frozen=True)
class Assistance:
    """The curve to go by, whether a model helped or why not (a code), and the count by people alone."""

    curve: Curve
    code: str
    alone: Count

    @property
    def narrowed(self) -> float:
        """By which share the interval of the count is narrower than by people alone, up to 1; below 0: wider."""
        count, width = self.curve.count(), self.alone.high - self.alone.low
        return 1 - (count.high - count.low) / width if width else 0.0


def assisted(curve: Curve, answers: Reals) -> Assistance:
    """The curve of people's verdicts with the help of a model's answers (hits,): 0 to 1, NaN where it gave none.

    Answers beyond the last rank that people judged are left out.
    """
    answers = np.where(np.arange(1, curve.hits + 1) <= curve.sample.ranks.max(), answers, np.nan)
    alone = curve.count()
    judged, yes = answers[curve.sample.ranks - 1], curve.verdicts >= 0.5
    answered = ~np.isnan(judged)
    obstacles = {  # why there is nothing to fit
        ERRING: not curve.accuracy.exact,
        DEEP: curve.hits > FARTHEST,
        FEW_VERDICTS: len(yes) < min(VERDICTS, curve.hits),
        FEW_ANSWERS: answered.mean() < ANSWERED,
        ONE_SIDED: yes[answered].all() or not yes[answered].any(),
        CONSTANT: len(np.unique(judged[answered])) < 2,
    }
    if code := next((code for code, holds in obstacles.items() if holds), ""):
        return Assistance(curve, code, alone)
    hidden = _fitted(curve, answers)
    if hidden is None:
        return Assistance(curve, NO_HELP, alone)
    # Also where it is wider: to take the narrower of two intervals each time would hold the truth too seldom
    helped = Assistance(replace(curve, hidden=hidden), HELPED, alone)
    return helped if helped.narrowed > 0 else replace(helped, code=WIDER)


# -- the fit --------------------------------------------------------------------------------------------------


def _fitted(curve: Curve, answers: Reals) -> HiddenHits | None:
    """What may be so of the hits without a verdict; None where answers probably tell nothing."""
    rng = np.random.default_rng([curve.seed, len(curve.sample.ranks)])
    strengths = [(0.0, NOTHING), *((one, (1 - NOTHING) * belief / 2) for one, belief in STRENGTHS.items())]
    models: list[_chain.ChainModel] = []
    near = np.clip(answers, EDGE, 1 - EDGE)
    for scaled in (_centred(np.log(near / (1 - near))), _centred(_order(answers))):
        for strength, belief in strengths:
            if strength or not models:  # without the answers there is one scale only
                models += _models(curve, strength * scaled, belief)
    evidence = np.array([model.evidence for model in models])
    weight = np.exp(evidence - evidence.max())
    helpful = weight[len(_chain.SLOPES) :].sum() / weight.sum()  # the first models go without answers
    if helpful < SURE:
        return None
    parts = [_drawn(curve, model, n, rng) for model, n in _chain.apportioned(models, DRAWS, rng)]
    relevant = np.concatenate([part.relevant for part in parts], axis=1)
    share = np.average([part.share for part in parts], axis=0, weights=[part.relevant.shape[1] for part in parts])
    return HiddenHits(share, relevant)


def _order(answers: Reals) -> Reals:
    """Answers by their order alone, as the log-odds of the share below them: of use where a model is too sure."""
    known = answers[~np.isnan(answers)]
    _, place, count = np.unique(known, return_inverse=True, return_counts=True)
    below = (np.cumsum(count) - count / 2) / len(known)  # (values,)
    scaled = np.full(len(answers), np.nan)
    scaled[~np.isnan(answers)] = np.log(below / (1 - below))[place]
    return scaled


def _centred(values: Reals) -> Reals:
    """On a scale of width 1 around their mean, (hits,)."""
    width = np.nanmax(values) - np.nanmin(values)
    return np.asarray((values - np.nanmean(values)) / max(width, EDGE))


def _models(curve: Curve, offset: Reals, belief: float) -> list[_chain.ChainModel]:
    """The models of each slope, with such offsets of the log-odds, (hits,); NaN where there is no answer."""
    grid, cells = _chain.grid(curve.hits), _chain.cells(curve.hits)
    share = _shares(offset[curve.sample.ranks - 1], offset, grid.share)  # (n, states)
    verdicts = curve.verdicts[:, None]
    logs = np.zeros((int(cells[-1]) + 1, len(grid.share)))
    np.add.at(logs, cells[curve.sample.ranks - 1], np.log(verdicts * share + (1 - verdicts) * (1 - share)))
    return _chain.models(curve.hits, logs, offset, belief)


def _shares(own: Reals, offset: Reals, share: Reals) -> Reals:
    """How probable hits of these offsets (n,) are relevant in cells of these shares (states,), (n, states).

    A hit without an answer has the mean of all that have one.
    """
    odds = np.log(share / (1 - share))
    mean = (1 / (1 + np.exp(-odds[None] - offset[~np.isnan(offset)][:, None]))).mean(axis=0)
    return np.where(np.isnan(own)[:, None], mean[None], 1 / (1 + np.exp(-odds[None] - np.nan_to_num(own)[:, None])))


def _drawn(curve: Curve, model: _chain.ChainModel, draws: int, rng: np.random.Generator) -> HiddenHits:
    """Draws of a model: which hits without a verdict are relevant."""
    grid, cells = _chain.grid(curve.hits), _chain.cells(curve.hits)
    states = _chain.sampled(model, draws, rng)
    relevant, share = np.zeros((curve.hits, draws), bool), np.zeros(curve.hits)
    table = _shares(model.given, model.given, grid.share)  # (hits, states)
    edges = np.searchsorted(cells, np.arange(len(states) + 1))
    for state, first, end in zip(states, edges, edges[1:], strict=False):
        probability = table[first:end, state]  # (hits of the cell, draws)
        relevant[first:end], share[first:end] = rng.random(probability.shape) < probability, probability.mean(axis=1)
    relevant[curve.sample.ranks - 1] = False  # what was judged is counted by its verdict
    return HiddenHits(share, relevant)
