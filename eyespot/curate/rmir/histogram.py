"""A histogram of shares as SVG, with a line where a threshold stands; in colours for light and dark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eyespot.html import safe

WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 640, 240, 46, 46, 14  # pixels
BINS = 20
_STYLE = """.hist text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
  fill: #66635c } .hist .bar { fill: #0b6b57 } .hist .under { fill: #0b6b57; opacity: .35 }
.hist line { stroke: #66635c } .hist .cut { stroke: #c05a2b; stroke-width: 2; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) { .hist text { fill: #a5a198 } .hist .bar, .hist .under { fill: #63cfb2 }
  .hist line { stroke: #a5a198 } .hist .cut { stroke: #ee9064 } }"""


def histogram(values: Sequence[float], threshold: float, name: str) -> str:
    """Counts of values from 0 to 1 in bins of 0.05; what lies under the threshold is paler."""
    counts, _ = np.histogram(np.clip(np.array(values, np.float64), 0, 1), BINS, (0, 1))
    top = max(1, int(counts.max(initial=0)))
    bars, wide = "", (WIDTH - LEFT - 10) / BINS - 2
    for number, count in enumerate(counts.tolist()):
        if count:
            high, kind = (
                (HEIGHT - ABOVE - BELOW) * count / top,
                "under" if (number + 0.5) / BINS <= threshold else "bar",
            )
            corner = f'x="{_x(number / BINS) + 1:.1f}" y="{HEIGHT - BELOW - high:.1f}"'
            bars += f'<rect class="{kind}" {corner} width="{wide:.1f}" height="{high:.1f}"/>'
    at = _x(threshold)
    cut = f'<line class="cut" x1="{at:.1f}" x2="{at:.1f}" y1="{ABOVE}" y2="{HEIGHT - BELOW}"/>'
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{safe(name)}"'
    floor = HEIGHT - BELOW
    marks = "".join(
        f'<text x="{_x(share / 4):.1f}" y="{floor + 18}" text-anchor="middle">{share / 4:g}</text>'
        for share in range(5)
    )
    axes = (
        f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{floor}" y2="{floor}"/>{marks}'
        f'<text x="{_x(0.5):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{safe(name)}</text>'
        f'<text x="{LEFT - 6}" y="{ABOVE + 10}" text-anchor="end">{top:,}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
    )
    inside = f"<style>{_STYLE}</style>{bars}{axes}{cut}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="hist" {box}>{inside}</svg>'


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - 10) * min(1.0, max(0.0, share))
