"""Where records went, drawn as a stream that narrows: step under step, and to the right of each what it lost and why.

The drawing is plain SVG with its own colours for light and dark, so that it stands in a page and as a file. Widths are
numbers of records, all on one scale; a loss too small to see is drawn as a hairline.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eyespot.html import safe

WIDTH = 500  # pixels
MOST = 6  # reasons of a step that are drawn; the others are drawn as one
HAIR = 1.25  # pixels
EDGE, TURN, BAR = 4, 46, 5  # pixels: the margin, room for a turn, the height of a step's bar
TRUNK = 0.3 * WIDTH  # pixels of the most records that a step has
TEXT = EDGE + TRUNK + TURN  # where text begins
LINE, LETTER = 17, 7.6  # pixels: the height of a line of text, the width of a letter
LETTERS = int((WIDTH - TEXT) / LETTER)  # of a line of text
BOLD = 0.88  # how many bold letters take the room of one

_STYLE = """.losses text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
  fill: #1d1c1a }
.losses .step { font-weight: 600 } .losses .count { fill: #66635c; font-size: 13px }
.losses .flow { fill: #0b6b57; opacity: .24 } .losses .added { fill: #0b6b57; opacity: .12 }
.losses .bar { fill: #0b6b57 }
.losses .lost { fill: #c05a2b; opacity: .5 }
@media (prefers-color-scheme: dark) {
  .losses text { fill: #eeece6 } .losses .count { fill: #a5a198 }
  .losses .flow, .losses .bar, .losses .added { fill: #63cfb2 } .losses .lost { fill: #ee9064 }
}
@media print { .losses text { fill: #000 } .losses .count { fill: #444 } }"""


@dataclass(frozen=True)
class SankeyStage:
    """A step's balance: `came + added = kept + all of lost`, which are counts by reason."""

    name: str
    came: int
    added: int
    kept: int
    lost: Mapping[str, int]


def sankey(stages: Sequence[SankeyStage]) -> str:
    """The stream as SVG."""
    record = TRUNK / max((1, *(stage.came + stage.added for stage in stages)))  # pixels of one
    parts: list[str] = []
    top = 0.0
    for at, stage in enumerate(stages):
        ends = [at + max(count * record, len(lines) * LINE) for _, count, at, lines in _slots(stage, 0, record)]
        bottom = top + (max([3 * LINE, *ends]) + 8)
        parts += _stage(stage, top, bottom, record)
        if at + 1 < len(stages) and (after := stages[at + 1]).added:  # what it adds opens like a fan above its bar
            left, right = EDGE + after.came * record, EDGE + (after.came + after.added) * record
            fan = f"M{left:.2f} {bottom - 34:.1f}L{right:.2f} {bottom + LINE:.1f}H{left:.2f}Z"
            parts.append(f'<path class="added" d="{fan}"/>')
        top = bottom
    total = stages[-1].kept if stages else 0
    end_width = max(total * record, HAIR)
    parts.append(f'<rect class="bar" x="{EDGE}" y="{top + LINE:.1f}" width="{end_width:.2f}" height="{BAR}"/>')
    parts.append(f'<text class="step" x="{TEXT:.1f}" y="{top + LINE + 6:.1f}">{total:,} in all</text>')
    height = round(top + LINE + BAR + 4)
    description = "What each step kept: " + ", ".join(f"{stage.name} {stage.kept:,}" for stage in stages)
    return (
        f'<svg class="losses" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img"><title>{safe(description)}</title><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>"
    )


# -- one step ---------------------------------------------------------------------------------------------------


def _stage(stage: SankeyStage, top: float, bottom: float, record: float) -> Iterator[str]:
    bar = top + LINE
    width = (stage.came + stage.added) * record
    room = int(LETTERS * BOLD)
    short = textwrap.shorten(stage.name, room, placeholder="…") or stage.name[:room]
    yield f'<text class="step" x="{TEXT:.1f}" y="{top + LINE + 6:.1f}">{safe(short)}</text>'
    # The numbers as far as there is room: what came in is what the step before kept, and may be left out
    parts = [(stage.came, "in"), (stage.added, "added"), (stage.kept, "kept")]
    counts = [f"{count:,} {what}" for count, what in parts if count or what == "kept"]
    while len(counts) > 1 and len(", ".join(counts)) > LETTERS:
        counts = counts[1:]
    yield f'<text class="count" x="{TEXT:.1f}" y="{top + 2 * LINE + 6:.1f}">{safe(", ".join(counts))}</text>'
    right = EDGE + width
    for reason, count, at, lines in _slots(stage, top, record):
        thick = max(count * record, HAIR)
        left, lower, end = right - thick, at + thick, TEXT - 10
        # A band that leaves the bar downwards and turns to the right
        yield (
            f'<path class="lost" d="M{right:.2f} {bar + BAR:.1f}Q{right:.2f} {at:.1f} {end:.1f} {at:.1f}V{lower:.1f}'
            f'Q{left:.2f} {lower:.1f} {left:.2f} {bar + BAR:.1f}Z"/>'
        )
        yield _text(TEXT, at + thick / 2 - (len(lines) - 1) * LINE / 2 + 5, lines, f"{reason}: {count:,}")
        right -= count * record
    flow = stage.kept * record
    yield f'<rect class="flow" x="{EDGE}" y="{bar + BAR:.1f}" width="{flow:.2f}" height="{bottom - top - BAR:.1f}"/>'
    yield f'<rect class="bar" x="{EDGE}" y="{bar:.1f}" width="{max(width, HAIR):.2f}" height="{BAR}"/>'


def _slots(stage: SankeyStage, top: float, record: float) -> Iterator[tuple[str, int, float, list[str]]]:
    """Reason, count, upper end and lines of text of each loss, one under the other."""
    at = top + 3 * LINE
    ordered = sorted(stage.lost.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) <= MOST:
        largest = ordered
    else:
        rest = ordered[MOST - 1 :]
        largest = [*ordered[: MOST - 1], (f"{len(rest)} other reasons", sum(count for _, count in rest))]
    for reason, count in largest:
        lines = textwrap.wrap(f"{reason} {count:,}", LETTERS, max_lines=2, placeholder=f"… {count:,}")
        thick, text = max(count * record, HAIR), len(lines) * LINE + 3
        yield reason, count, at + max(0.0, (text - thick) / 2), lines
        at += max(thick, text) + 3


def _text(left: float, top: float, lines: Sequence[str], whole: str) -> str:
    """A reason, with its count behind it in another shade."""
    *before, last = lines
    last, _, count = last.rpartition(" ")
    shown = f'<tspan class="count">{safe(count)}</tspan>'
    rows = [safe(line) for line in before] + [f"{safe(last)} {shown}" if last else shown]
    spans = (f'<tspan x="{left:.1f}" y="{top + at * LINE:.1f}">{row}</tspan>' for at, row in enumerate(rows))
    return f"<text>{''.join(spans)}<title>{safe(whole)}</title></text>"
