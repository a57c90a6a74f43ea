"""Choosing k, temperature and η: where dis(t) of captions as first written lies, and what would be accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eyespot.curate._discriminability import Discriminability, DiscriminabilityBin, Reals, entropies
from eyespot.curate._discriminability import histogram as counted
from eyespot.html import safe
from eyespot.pipelines.data_card import CardTable

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
    rows = [_row(entropies(cosines, temperature), temperature, k) for temperature in TEMPERATURES if len(cosines)]
    columns = ["temperature", "median dis(t)", *(f"η = {eta:g}" for eta in ETAS)]
    note = f"The share of captions, as first written, whose dis(t) lies in the band; log k = {math.log(k):.3f}."
    return CardTable("What would be accepted", columns, rows, note)


def _row(values: Reals, temperature: float, k: int) -> list[str]:
    bands = [Discriminability(k, temperature, eta).band for eta in ETAS]
    shares = [f"{np.mean((values >= low) & (values <= high)):.0%}" for low, high in bands]
    return [f"{temperature:g}", f"{np.median(values):.3f}", *shares]


def drawing(values: Sequence[float], how: Discriminability) -> str:
    """The histogram of dis(t) with the band that is accepted, as SVG."""
    bins = counted(np.array(values, np.float64), how.k, BINS)
    top = max([1, *(one.captions for one in bins)])
    low, high = how.band
    shape = f'x="{_x(low, how):.1f}" y="8" width="{_x(high, how) - _x(low, how):.1f}" height="{HEIGHT - FOOT - 8}"'
    band = f'<rect class="band" {shape}/>'
    bars = "".join(_bar(one, top, how) for one in bins if one.captions)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
    told = f"dis(t) of {len(values):,} captions, between 0 and log k"
    head = f'<svg class="dis" xmlns="http://www.w3.org/2000/svg" {box}><title>{safe(told)}</title>'
    floor, (low, high) = HEIGHT - FOOT, how.band
    # The ends of the band are written inside it: those of a wide one lie close to the ends of the axis.
    axis_band = [(low, f"{low:.2f}", "start"), (high, f"{high:.2f}", "end")] if low > 0 else []
    texts = "".join(
        f'<text x="{_x(at, how):.1f}" y="{floor + 17}" text-anchor="{anchor}">{text}</text>'
        for at, text, anchor in [(0.0, "0", "middle"), *axis_band, (math.log(how.k), f"log {how.k}", "middle")]
    )
    told = f"dis(t): too much is said on the left, too little on the right; the highest bar is {top:,} captions"
    axis = (
        f'<line x1="{SIDE}" x2="{WIDTH - 3 * SIDE}" y1="{floor}" y2="{floor}"/>{texts}'
        f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{told}</text>'
    )
    return f"{head}<style>{_STYLE}</style>{band}{bars}{axis}</svg>"


def _bar(one: DiscriminabilityBin, top: int, how: Discriminability) -> str:
    height = (HEIGHT - FOOT - 16) * one.captions / top
    left, right = _x(one.low, how), _x(one.high, how)
    kind = "in" if how.band[0] <= (one.low + one.high) / 2 <= how.band[1] else "out"
    shape = (
        f'x="{left + 0.5:.1f}" y="{HEIGHT - FOOT - height:.1f}" width="{right - left - 1:.1f}" height="{height:.1f}"'
    )
    return f'<rect class="{kind}" {shape}><title>{one.captions:,}</title></rect>'


def _x(value: float, how: Discriminability) -> float:
    return SIDE + (WIDTH - 4 * SIDE) * value / math.log(how.k)
