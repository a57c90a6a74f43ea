"""Tables and figures to choose k, temperature and η by: the dis(t) of captions as first written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eyespot.curate._discriminability import Discriminability, entropies, histogram
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
    rows = []
    for temperature in TEMPERATURES if len(cosines) else ():
        values = entropies(cosines, temperature)  # (captions,)
        bands = [Discriminability(k, temperature, eta).band for eta in ETAS]
        shares = [f"{np.mean((values >= low) & (values <= high)):.0%}" for low, high in bands]
        rows.append([f"{temperature:g}", f"{np.median(values):.3f}", *shares])
    columns = ["temperature", "median dis(t)", *(f"η = {eta:g}" for eta in ETAS)]
    note = f"The share of captions, as first written, whose dis(t) lies in the band; log k = {math.log(k):.3f}."
    return CardTable("What would be accepted", columns, rows, note)


def drawing(values: Sequence[float], how: Discriminability) -> str:
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
