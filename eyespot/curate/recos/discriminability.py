"""How well a caption tells its image from the others that look most like it: dis(t) of ReCoS (section 3.2).

dis(t) is the entropy of the softmax over the cosines of a caption t with the k images nearest to it, its own left out.
It is 0 where one other image alone fits the caption, and log k where all k fit alike. Low values come with captions
that say too much, high ones with captions that say too little.

The paper takes the softmax of raw cosines, temperature 1. Cosines of the k nearest images lie close together, and
where they lie within s of each other the entropy is at least log k - s²/8 (at temperature T: log k - (s/T)²/8).
With s = 0.1 and k = 10 this is 2.3013 of 2.3026, whatever the caption says: no η separates anything. So the temperature
is a setting here, 0.01 by default as CLIP scales its own cosines, and a table and a drawing show where values lie
before η is chosen.
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


@dataclass(frozen=True)
class DiscriminabilityBin:
    """How many captions have a dis(t) of at least `low` and below `high`; the last bin holds log k as well."""

    low: float
    high: float
    captions: int


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


TEMPERATURES = (1.0, 0.1, 0.05, 0.02, 0.01, 0.005)
ETAS = (0.2, 0.4, 0.6, 0.8, 0.9)
BINS = 40
WIDTH, HEIGHT, SIDE, FOOT = 640, 210, 12, 44  # pixels
_STYLE = """.dis text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
  fill: #66635c } .dis .in { fill: #0b6b57 } .dis .out { fill: #c05a2b; opacity: .55 } .dis line { stroke: #66635c }
.dis .band { fill: #0b6b57; opacity: .1 }
@media (prefers-color-scheme: dark) { .dis text { fill: #a5a198 } .dis .in, .dis .band { fill: #63cfb2 }
  .dis .out { fill: #ee9064 } .dis line { stroke: #a5a198 } }"""


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


def histogram_drawing(values: Sequence[float], how: Discriminability) -> str:
    """The histogram of dis(t) with the band that is accepted, as SVG."""

    def x(value: float) -> float:
        return SIDE + (WIDTH - 4 * SIDE) * value / math.log(how.k)

    bins = histogram(np.array(values, np.float64), how.k, BINS)
    top = max([1, *(bin.captions for bin in bins)])
    (low, high), floor = how.band, HEIGHT - FOOT
    bars = []
    for bin in bins:
        if bin.captions:
            height = (floor - 16) * bin.captions / top
            kind = "in" if low <= (bin.low + bin.high) / 2 <= high else "out"
            left, width = x(bin.low) + 0.5, x(bin.high) - x(bin.low) - 1
            shape = f'x="{left:.1f}" y="{floor - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
            bars.append(f'<rect class="{kind}" {shape}><title>{bin.captions:,}</title></rect>')
    # The ends of the band are written inside it: those of a wide one lie close to the ends of the axis.
    marks = [(0.0, "0", "middle"), (math.log(how.k), f"log {how.k}", "middle")]
    marks[1:1] = [(low, f"{low:.2f}", "start"), (high, f"{high:.2f}", "end")] if low > 0 else []
    labels = [f'<text x="{x(v):.1f}" y="{floor + 17}" text-anchor="{side}">{text}</text>' for v, text, side in marks]
    legend = f"dis(t): too much is said on the left, too little on the right; the highest bar is {top:,} captions"
    return (
        f'<svg class="dis" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img"><title>dis(t) of {len(values):,} captions, between 0 and log k</title>'
        f'<style>{_STYLE}</style><rect class="band" x="{x(low):.1f}" y="8" width="{x(high) - x(low):.1f}" '
        f'height="{floor - 8}"/>{"".join(bars)}'
        f'<line x1="{SIDE}" x2="{WIDTH - 3 * SIDE}" y1="{floor}" y2="{floor}"/>{"".join(labels)}'
        f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{legend}</text></svg>'
    )
