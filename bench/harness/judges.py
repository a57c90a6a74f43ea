"""Simulated answers of every kind of judge: right, erring in 15 of 100 cases either way, or that and overconfident.

A kind answers on its own scale: the share of yes in a token, grades from 0 to 10, a matching head's probability, the
sigmoid of a score, a cosine on the stated curve. A person says yes or no.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.judges.encoder import share
from eyespot.types import UsageError

Reals: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int64]
Answers: TypeAlias = Callable[[Labels, str, np.random.Generator], Reals]  # labels (hits,), how it behaves

BEHAVIOURS = ("right", "errs 15/15 %", "overconfident")
RIGHT, ERRING, OVERCONFIDENT = BEHAVIOURS
ERROR = 0.15
# Of two normal distributions that a line halfway between them separates as well as these judges, in deviations
DISTANCE = {RIGHT: 4.65, ERRING: 2.073, OVERCONFIDENT: 2.073}


def yes_or_no(labels: Labels, behaviour: str, rng: np.random.Generator) -> Labels:
    """What the judge decides, (hits,)."""
    wrong = np.zeros(len(labels), bool) if behaviour == RIGHT else rng.random(len(labels)) < ERROR
    return np.where(wrong, 1 - labels, labels)


def person(labels: Labels, behaviour: str, rng: np.random.Generator) -> Reals:
    return yes_or_no(labels, behaviour, rng).astype(np.float64)


def probability(middle: float, spread: float) -> Answers:
    """Log-odds around ± `middle`; an overconfident judge always says 0.97 or 0.03, or more."""

    def answers(labels: Labels, behaviour: str, rng: np.random.Generator) -> Reals:
        side = 2 * yes_or_no(labels, behaviour, rng) - 1
        sure = behaviour == OVERCONFIDENT
        return _sigmoid(side * max(middle, 3.5 * sure) + spread * (0.1 if sure else 1) * rng.standard_normal(len(side)))

    return answers


def grades(labels: Labels, behaviour: str, rng: np.random.Generator) -> Reals:
    yes = yes_or_no(labels, behaviour, rng)
    if behaviour == OVERCONFIDENT:
        return yes.astype(np.float64)
    return np.where(yes == 1, rng.integers(6, 11, len(yes)), rng.integers(0, 5, len(yes))) / 10


def score(labels: Labels, behaviour: str, rng: np.random.Generator) -> Reals:
    """The sigmoid of one number that is higher for relevant pictures."""
    number = DISTANCE[behaviour] * (labels - 0.5) + rng.standard_normal(len(labels))
    return _sigmoid(number * (5 if behaviour == OVERCONFIDENT else 1))


def cosine(labels: Labels, behaviour: str, rng: np.random.Generator) -> Reals:
    number = DISTANCE[behaviour] * (labels - 0.5) + rng.standard_normal(len(labels))
    width = 0.15 if behaviour == OVERCONFIDENT else 0.03
    return np.array([share(value) for value in (0.25 + width * number).tolist()])


def _sigmoid(odds: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-odds)))


ANSWERS: dict[str, Answers] = {
    "anthropic": grades,
    "blip_itm": probability(5.0, 2.0),
    "cross_encoder": score,
    "encoder": cosine,
    "openai": probability(2.5, 1.0),
    "person": person,
    "transformers": probability(1.5, 1.0),
}


def kinds() -> list[str]:
    """Every kind that `eyespot judges list` names; `UsageError` for one that nobody simulates."""
    if lacking := set(rooms.names("judges")) - set(ANSWERS):
        raise UsageError(f"no simulated answers of {', '.join(sorted(lacking))}; add them to bench/harness/judges.py")
    return rooms.names("judges")
