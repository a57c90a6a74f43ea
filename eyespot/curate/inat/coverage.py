"""Where on the Earth a collection was seen, before and after the draw: counts in cells of one area, and as a map."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.curate.inat.tables import Tables
from eyespot.storage.files import write_whole

COVERAGE = "coverage.csv"
DEGREES = 4.0  # of longitude that a cell is wide; at the equator 445 km, much more than coarsened positions hide
_WIDE, _HIGH, _GAP = 720, 230, 46
_STYLE = (
    '.map text { font: 14px system-ui, "Noto Sans", Arial, sans-serif; fill: #1d1c1a } .map .sea { fill: #8882 } '
    ".map .cell { fill: #0b6b57 } @media (prefers-color-scheme: dark) { .map text { fill: #eeece6 } "
    ".map .cell { fill: #63cfb2 } }"
)


class Cell(NamedTuple):
    """A cell by its numbers east of -180 and north of the pole, with how much was there and how much was drawn."""

    east: int
    north: int
    before: int
    after: int

    def sides(self) -> tuple[float, float, float, float]:
        """West, south, east, north in degrees."""
        west = self.east * DEGREES - 180
        return west, _latitude(self.north), west + DEGREES, _latitude(self.north + 1)


def _latitude(north: int) -> float:
    return math.degrees(math.asin(min(1.0, max(-1.0, north * math.radians(DEGREES) - 1))))


def covered(tables: Tables, before: str, after: str) -> list[Cell]:
    """The cells that something was seen in; both tables have columns latitude and longitude."""
    wide, high = round(360 / DEGREES), math.radians(DEGREES)
    cell = (
        f"SELECT CAST(floor((longitude + 180) / {DEGREES}) AS INTEGER) % {wide} AS east, "
        f"CAST(floor((sin(radians(latitude)) + 1) / {high!r}) AS INTEGER) AS north, count(*) AS times"
    )
    rows = tables.rows(
        f"SELECT b.east, b.north, b.times, COALESCE(a.times, 0) FROM ({cell} FROM {before} GROUP BY ALL) b "
        f"LEFT JOIN ({cell} FROM {after} GROUP BY ALL) a USING (east, north) ORDER BY 2, 1"
    )
    return [Cell(*row) for row in rows]


def write_coverage(cells: Sequence[Cell], out: Path) -> None:
    """The cells as a table: their sides in degrees, and the observations before and after the draw."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("west", "south", "east", "north", "before", "after"))
    writer.writerows((*(round(side, 4) for side in one.sides()), one.before, one.after) for one in cells)
    write_whole(out / COVERAGE, lambda file: file.write(text.getvalue().encode()))


def drawn_map(cells: Sequence[Cell]) -> str:
    """Both counts as SVG maps, one above the other, each on its own scale; area-true, darker where more was seen."""
    height = 2 * (_HIGH + _GAP)
    parts = [*_panel(cells, "before", 0), *_panel(cells, "after", _HIGH + _GAP)]
    return (
        f'<svg class="map" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {height}" width="{_WIDE}" '
        f'height="{height}" role="img"><title>Observations before and after the draw</title><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>"
    )


def _panel(cells: Sequence[Cell], which: str, top: int) -> Iterator[str]:
    counts = [getattr(one, which) for one in cells]
    most = max(counts, default=1)
    told = f"{which} the draw: {sum(counts):,} observations in {sum(map(bool, counts)):,} cells"
    yield f'<text x="0" y="{top + 20}">{told[:1].upper() + told[1:]}, up to {most:,} in one</text>'
    yield f'<rect class="sea" x="0" y="{top + 30}" width="{_WIDE}" height="{_HIGH}"/>'
    step, high = _WIDE * DEGREES / 360, _HIGH * math.radians(DEGREES) / 2
    for one, count in zip(cells, counts, strict=True):
        if count:
            shade = 0.12 + 0.88 * math.log1p(count) / math.log1p(most)
            y = max(float(top + 30), top + 30 + _HIGH - (one.north + 1) * high)
            yield (
                f'<rect class="cell" x="{one.east * step:.2f}" y="{y:.2f}" width="{step:.2f}" height="{high:.2f}" '
                f'opacity="{shade:.2f}"/>'
            )
