"""What the share of relevant hits may do along a ranking: a chain of log-odds over small cells of log-rank.

Relevance falls with rank, by jumps of any size anywhere, and seldom rises; or the order tells nothing and the share
stays. In any cell it may also begin anew at any height, as behind look-alikes. How steeply it falls is not known
before: three beliefs, of which the verdicts pick. The posterior is drawn by forward filtering and backward sampling, so
it is exact up to the grid of log-odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

CELLS_PER_DECADE = 8
STEP = 0.25  # of the grid of log-odds
TOP = 5.0  # the highest log-odds: 99.3 % of the hits are relevant
FALL, RISE = 1.0, 0.5  # how far a fall or a rise goes on average, in log-odds
ANEW = 0.02  # probability that a cell takes any share, whatever the one before it has


class Slope(NamedTuple):
    """A belief on how relevance goes from one cell to the next."""

    belief: float  # before any verdict
    falls: float  # probability
    rises: float


# An order that tells nothing is as likely as one that tells something. The steepest comes to a share that goes with
# the power -1.2 of the rank. Chosen once for coverage over rankings of many shapes (bench/calibration.py).
SLOPES = (Slope(0.5, 0.005, 0.005), Slope(0.25, 0.1, 0.03), Slope(0.25, 0.35, 0.03))


class Grid(NamedTuple):
    """The shares that a cell may have (states,), and for each slope how probable each follows each (states, states)."""

    share: Reals
    steps: tuple[Reals, ...]


class Path(NamedTuple):
    """What is known of each cell from the verdicts up to it, (cells, states); the log of their probability at all."""

    filtered: Reals
    evidence: float


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


def filtered(logs: Reals, steps: Reals) -> Path:
    """Cell by cell from the first rank on; `logs` (cells, states) of how likely the verdicts in each are."""
    known = np.empty_like(logs)
    best = logs.max(axis=1, keepdims=True)  # thousands of verdicts on one cell would be likely by 0.0
    evidence = float(best.sum())
    before = np.full(logs.shape[1], 1 / logs.shape[1])
    for cell, seen in enumerate(np.exp(logs - best)):
        joint = before * seen
        evidence += float(np.log(joint.sum()))
        known[cell] = joint / joint.sum()
        before = known[cell] @ steps
    return Path(known, evidence)


def sampled(path: Path, steps: Reals, uniform: Reals) -> Ints:
    """States that all verdicts together allow, drawn from the last cell back, (cells, draws).

    `uniform` (cells, draws) are random numbers between 0 and 1.
    """
    drawn = np.empty(uniform.shape, np.int64)
    following = np.zeros(uniform.shape[1], np.int64)
    allowed = path.filtered[-1][:, None]  # (states, what follows)
    for cell in range(len(drawn) - 1, -1, -1):
        # For each draw a row of its column, by weight
        rising = np.cumsum(allowed.T, axis=1)
        rising /= np.maximum(rising[:, -1:], np.finfo(np.float64).tiny)  # no draw asks for a column of zeros
        rising[:, -1] = 1.0
        flat = (rising + np.arange(len(rising))[:, None]).ravel()
        row = np.searchsorted(flat, uniform[cell] + following, side="right") - following * len(allowed)
        following = drawn[cell] = np.minimum(row, len(allowed) - 1)
        allowed = path.filtered[cell - 1][:, None] * steps
    return drawn


def apportioned(evidence: Sequence[float], draws: int, rng: np.random.Generator) -> Ints:
    """How many of the draws each of these models gets, by belief times evidence, (models,)."""
    relative = np.exp(np.asarray(evidence) - np.max(evidence))
    each: Ints = rng.multinomial(draws, relative / relative.sum())
    return each
