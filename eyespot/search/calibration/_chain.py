"""What the share of relevant hits may do along a ranking: a chain of log-odds over small cells of log-rank.

Relevance falls with rank, by jumps of any size anywhere, and seldom rises; or the order tells nothing and the share
stays. In any cell it may also begin anew at any height, as behind look-alikes. How steeply it falls is not known
before: three beliefs, of which the verdicts pick. The posterior is drawn by forward filtering and backward sampling, so
it is exact up to the grid of log-odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

CELLS_PER_DECADE = 8
STEP = 0.25  # of the grid of log-odds
TOP = 5.0  # the highest log-odds: 99.3 % of the hits are relevant
FALL, RISE = 1.0, 0.5  # how far a fall or a rise goes on average, in log-odds
ANEW = 0.02  # probability that a cell takes any share, whatever the one before it has


@dataclass(frozen=True)
class Slope:
    """A belief on how relevance goes from one cell to the next."""

    belief: float  # before any verdict
    falls: float  # probability
    rises: float


# An order that tells nothing is as likely as one that tells something. The steepest comes to a share that goes with
# the power -1.2 of the rank. Chosen once for coverage over rankings of many shapes (bench/calibration.py).
SLOPES = (Slope(0.5, 0.005, 0.005), Slope(0.25, 0.1, 0.03), Slope(0.25, 0.35, 0.03))


@dataclass(frozen=True)
class Grid:
    """The shares that a cell may have (states,), and for each slope how probable each follows each (states, states)."""

    share: Reals
    steps: tuple[Reals, ...]


@dataclass(frozen=True)
class ChainModel:
    """A slope of the curve, with whatever else is believed (`given`), and what the verdicts then say."""

    given: Reals
    steps: Reals  # (states, states)
    filtered: Reals  # what is known of each cell from the verdicts up to it, (cells, states)
    evidence: float  # log of belief times probability of the verdicts


def cells(hits: int) -> Ints:
    """The cell of each hit, (hits,)."""
    return np.floor(CELLS_PER_DECADE * np.log10(np.arange(1, hits + 1)) + 1e-9).astype(np.int64)


@lru_cache(maxsize=64)
def grid(hits: int) -> Grid:
    """For a ranking of so many hits; a share of less than one hit in all of them is as good as none."""
    odds = np.arange(-np.log(hits), TOP + STEP, STEP)  # (states,)
    return Grid(1 / (1 + np.exp(-odds)), tuple(_stepping(len(odds), slope) for slope in SLOPES))


def _stepping(states: int, slope: Slope) -> Reals:
    falls, rises = slope.falls * _jumps(states, FALL), slope.rises * _jumps(states, RISE)
    by = np.concatenate([falls[:0:-1], [1 - slope.falls - slope.rises], rises[1:]])  # a step of 1 - states … states - 1
    state = np.arange(states)
    steps = by[state[None, :] - state[:, None] + states - 1]  # (from, to)
    steps[:, 0] += slope.falls * (1 - STEP / FALL) ** state  # what would fall or rise over an end stops there
    steps[:, -1] += slope.rises * (1 - STEP / RISE) ** state[::-1]
    return np.asarray((1 - ANEW) * steps + ANEW / states)


def _jumps(states: int, mean: float) -> Reals:
    """Probabilities of jumps of 0, 1, 2, … steps, (states,): geometric from 1 on."""
    steps = np.arange(1, states)
    return np.concatenate([[0], STEP / mean * (1 - STEP / mean) ** (steps - 1)])


def models(hits: int, logs: Reals, given: Reals, belief: float = 1.0) -> list[ChainModel]:
    """The model of each slope for so many hits; `logs` (cells, states) of how likely the verdicts in each cell are."""
    made = []
    best = logs.max(axis=1, keepdims=True)  # thousands of verdicts on one cell would be likely by 0.0
    for slope, steps in zip(SLOPES, grid(hits).steps, strict=True):
        known, evidence = np.empty_like(logs), float(best.sum())  # cell by cell, from the first rank on
        before = np.full(logs.shape[1], 1 / logs.shape[1])
        for cell, seen in enumerate(np.exp(logs - best)):
            joint = before * seen
            evidence += float(np.log(joint.sum()))
            known[cell] = joint / joint.sum()
            before = known[cell] @ steps
        made.append(ChainModel(given, steps, known, evidence + float(np.log(slope.belief * belief))))
    return made


def sampled(model: ChainModel, draws: int, rng: np.random.Generator) -> Ints:
    """States that all verdicts together allow, drawn from the last cell back, (cells, draws)."""
    uniform = rng.random((len(model.filtered), draws))
    drawn = np.empty(uniform.shape, np.int64)
    following = np.zeros(uniform.shape[1], np.int64)
    allowed = model.filtered[-1][:, None]  # (states, what follows)
    for cell in range(len(drawn) - 1, -1, -1):
        # For each draw a row of its column, by weight
        rising = np.cumsum(allowed.T, axis=1)
        rising /= np.maximum(rising[:, -1:], np.finfo(np.float64).tiny)  # no draw asks for a column of zeros
        rising[:, -1] = 1.0
        flat = (rising + np.arange(len(rising))[:, None]).ravel()
        row = np.searchsorted(flat, uniform[cell] + following, side="right") - following * len(allowed)
        following = drawn[cell] = np.minimum(row, len(allowed) - 1)
        allowed = model.filtered[cell - 1][:, None] * model.steps
    return drawn


def apportioned(models: Sequence[ChainModel], draws: int, rng: np.random.Generator) -> list[tuple[ChainModel, int]]:
    """The models that get some of the draws, by belief times evidence, with how many each gets."""
    evidence = np.array([model.evidence for model in models])
    relative = np.exp(evidence - evidence.max())
    each = rng.multinomial(draws, relative / relative.sum()).tolist()
    return [(model, count) for model, count in zip(models, each, strict=True) if count]
