"""How well a caption tells its image from the others that look most like it: dis(t) of ReCoS (section 3.2).

dis(t) is the entropy of the softmax over the cosines of a caption t with the k images nearest to it, its own left out.
It is 0 where one other image alone fits the caption, and log k where all k fit alike. Low values come with captions
that say too much, high ones with captions that say too little.

The paper takes the softmax of raw cosines, temperature 1. Cosines of the k nearest images lie close together, and
where they lie within s of each other the entropy is at least log k - s²/8 (at temperature T: log k - (s/T)²/8).
With s = 0.1 and k = 10 this is 2.3013 of 2.3026, whatever the caption says: no η separates anything. So the temperature
is a setting here, 0.01 by default as CLIP scales its own cosines, and two tables show where values lie before η is
chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.pipelines.data_card import CardTable
from eyespot.types import UsageError

Reals = NDArray[np.float64]

OVER_DETAILED, FINE, UNDER_DETAILED = "over-detailed", "fine", "under-detailed"


@dataclass(frozen=True)
class Discriminability:
    """What dis(t) is taken over, and what is accepted: values within η/2 · log k of the middle, ½ log k."""

    k: int = 10
    temperature: float = 0.01
    eta: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError(f"k is {self.k}; dis(t) compares 2 images or more")
        if not (0 < self.temperature < math.inf and 0 < self.eta <= 1):
            raise UsageError("the temperature of dis(t) is above 0, and η above 0 and at most 1")

    @property
    def band(self) -> tuple[float, float]:
        """The least and the greatest dis(t) that is accepted, in nats."""
        return (1 - self.eta) / 2 * math.log(self.k), (1 + self.eta) / 2 * math.log(self.k)

    def verdict(self, value: float) -> str:
        """One of `OVER_DETAILED`, `FINE` and `UNDER_DETAILED`; the ends of the band are fine."""
        low, high = self.band
        return OVER_DETAILED if value < low else UNDER_DETAILED if value > high else FINE


def entropies(similarities: NDArray[np.floating[Any]], temperature: float) -> Reals:
    """The entropy of the softmax of each row (captions, k) over the temperature, in nats, (captions,)."""
    scaled = np.asarray(similarities, np.float64) / temperature
    if not np.isfinite(scaled).all():
        raise UsageError("a cosine is not finite; embed these captions and images again")
    scaled -= scaled.max(axis=1, keepdims=True)
    weights = np.exp(scaled)
    total = weights.sum(axis=1)
    # of all forms of -Σ p log p this one has no logarithm of a weight that became 0
    return np.asarray(np.log(total) - (weights * scaled).sum(axis=1) / total)


TEMPERATURES = (1.0, 0.1, 0.05, 0.02, 0.01, 0.005)
ETAS = (0.2, 0.4, 0.6, 0.8, 0.9)
BINS = 20


def choices(nearest: Sequence[Sequence[float]], k: int) -> CardTable:
    """The share of captions that each temperature and η accepts; `nearest` are the k highest cosines of each."""
    cosines = np.array(nearest, np.float64).reshape(len(nearest), k)  # (captions, k)
    rows = []
    for temperature in TEMPERATURES if len(cosines) else ():
        values = entropies(cosines, temperature)  # (captions,)
        bands = [Discriminability(k, temperature, eta).band for eta in ETAS]
        shares = [f"{np.mean((values >= low) & (values <= high)):.0%}" for low, high in bands]
        rows.append([f"{temperature:g}", f"{np.median(values):.3f}", *shares])
    columns = ["temperature", "median dis(t)", *(f"η = {eta:g}" for eta in ETAS)]
    note = f"The share of captions, as first written, whose dis(t) lies in the band; log k = {math.log(k):.3f}."
    return CardTable("What would be accepted", columns, rows, note)


def histogram(first: Sequence[float], rewritten: Sequence[float], how: Discriminability) -> CardTable:
    """How dis(t) lies between 0 and log k, as first written and as accepted, in bins of equal width to choose η by."""
    edges = np.linspace(0, math.log(how.k), BINS + 1)
    counts = [np.histogram(np.clip(values, 0, edges[-1]), edges)[0].tolist() for values in (first, rewritten)]
    ends = [f"{edge:.2f}" for edge in edges]
    rows = [[f"{low} to {high}", *row] for low, high, *row in zip(ends[:-1], ends[1:], *counts, strict=True)]
    low, high = how.band
    note = (
        f"k {how.k}, temperature {how.temperature:g}, η {how.eta:g}: {low:.2f} to {high:.2f} is accepted. Less says "
        "too much, more says too little."
    )
    return CardTable("dis(t) of captions", ["dis(t)", "as first written", "that were kept"], rows, note)
