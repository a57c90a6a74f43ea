"""How well a caption tells its image from the others that look most like it: dis(t) of ReCoS (section 3.2).

dis(t) is the entropy of the softmax over the cosines of a caption t with the k images nearest to it, its own left out.
It is 0 where one other image alone fits the caption, and log k where all k fit alike. Low values come with captions
that say too much, high ones with captions that say too little.

The paper takes the softmax of raw cosines, temperature 1. Cosines of the k nearest images lie close together, and
where they lie within s of each other the entropy is at least log k - s²/8 (at temperature T: log k - (s/T)²/8).
With s = 0.1 and k = 10 this is 2.3013 of 2.3026, whatever the caption says: no η separates anything. So the temperature
is a setting here, 0.01 by default as CLIP scales its own cosines, and `histogram` shows where values lie before η is
chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError, Vectors

Reals = NDArray[np.float64]

OVER_DETAILED, FINE, UNDER_DETAILED = "over-detailed", "fine", "under-detailed"
_AT_ONCE = 1 << 24  # cosines


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


class DiscriminabilityBin(NamedTuple):
    """How many captions have a dis(t) of at least `low` and below `high`; the last bin holds log k as well."""

    low: float
    high: float
    captions: int


def discriminability(texts: Vectors, images: Vectors, own: NDArray[np.integer[Any]], how: Discriminability) -> Reals:
    """dis(t) of each caption in nats, from 0 to log k, (captions,).

    `texts` (captions, dim) and `images` (n, dim) are unit vectors of one space, `own` (captions,) the row of the image
    that a caption describes, -1 if it is not among them. `UsageError` if fewer than k images are left to compare.
    """
    if len(images) - bool(len(own) and own.max() >= 0) < how.k:
        raise UsageError(f"dis(t) compares {how.k} other images, and there are {len(images)} in all; make k smaller")
    parts = [entropies(nearest, how.temperature) for nearest in _nearest(texts, images, own, how.k)]
    return np.concatenate([np.empty(0), *parts])


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


def histogram(values: Reals, k: int, bins: int = 40) -> list[DiscriminabilityBin]:
    """How dis(t) lies between 0 and log k, in bins of equal width, to choose η by."""
    edges = np.linspace(0, math.log(k), bins + 1)
    counts, _ = np.histogram(np.clip(values, 0, edges[-1]), edges)
    return [
        DiscriminabilityBin(*row) for row in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    ]


def _nearest(texts: Vectors, images: Vectors, own: NDArray[np.integer[Any]], k: int) -> Iterator[Vectors]:
    """For some captions after the other, the cosines of the k nearest images but their own, (some, k)."""
    step = max(1, _AT_ONCE // len(images))
    for start in range(0, len(texts), step):
        cosines = texts[start : start + step] @ images.T  # (some, images)
        theirs = own[start : start + step]
        described = np.flatnonzero(theirs >= 0)
        cosines[described, theirs[described]] = -np.inf
        yield np.partition(cosines, -k, axis=1)[:, -k:]
