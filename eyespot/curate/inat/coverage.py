"""The positions of a collection before and after the draw: counts in cells of equal area, and as a map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.curate.inat.tables import Tables
from eyespot.storage.tables import write_csv

COVERAGE = "coverage.csv"
DEGREES = 4.0  # of longitude that a cell is wide; at the equator 445 km, much more than coarsened positions hide
_WIDE, _HIGH, _GAP = 720, 230, 46
_STYLE = (
    '.map text { font: 14px system-ui, "Noto Sans", Arial, sans-serif; fill: #1d1c1a } .map .sea { fill: #8882 } '
    ".map .cell { fill: #0b6b57 } @media (prefers-color-scheme: dark) { .map text { fill: #eeece6 } "
    ".map .cell { fill: #63cfb2 } }"
)


class Cell(NamedTuple):
    """A cell by its numbers east of -180° and north of the South Pole, with its observations before and after."""

    east: int
    north: int
    before: int
    after: int

    def sides(self) -> tuple[float, float, float, float]:
        """West, south, east, north in degrees."""
        west = self.east * DEGREES - 180
        sines = (north * math.radians(DEGREES) - 1 for north in (self.north, self.north + 1))
        south, north = (math.degrees(math.asin(min(1.0, max(-1.0, sine)))) for sine in sines)
        return west, south, west + DEGREES, north


def covered(tables: Tables, before: str, after: str) -> list[Cell]:
    """The cells with observations; both tables have columns latitude and longitude."""
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
    """Write the cells as a table: their sides in degrees, and the observations before and after the draw."""
    rows = ([*(round(side, 4) for side in cell.sides()), cell.before, cell.after] for cell in cells)
    write_csv(out / COVERAGE, [("west", "south", "east", "north", "before", "after"), *rows])


def drawn_map(cells: Sequence[Cell]) -> str:
    """Both counts as SVG maps, one above the other, each on its own scale; equal-area, darker where there are more."""
    height = 2 * (_HIGH + _GAP)
    parts = [*_panel(cells, "before", 0), *_panel(cells, "after", _HIGH + _GAP)]
    return (
        f'<svg class="map" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {height}" width="{_WIDE}" '
        f'height="{height}" role="img"><title>Observations before and after the draw</title><style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>"
    )


def _panel(cells: Sequence[Cell], which: str, top: int) -> Iterator[str]:
    counts = [getattr(cell, which) for cell in cells]
    most = max(counts, default=1)
    title = f"{which.capitalize()} the draw: {sum(counts):,} observations in {sum(map(bool, counts)):,} cells"
    yield f'<text x="0" y="{top + 20}">{title}, up to {most:,} in one</text>'
    yield f'<rect class="sea" x="0" y="{top + 30}" width="{_WIDE}" height="{_HIGH}"/>'
    step, high = _WIDE * DEGREES / 360, _HIGH * math.radians(DEGREES) / 2
    for cell, count in zip(cells, counts, strict=True):
        if count:
            shade = 0.12 + 0.88 * math.log1p(count) / math.log1p(most)
            y = max(float(top + 30), top + 30 + _HIGH - (cell.north + 1) * high)
            yield (
                f'<rect class="cell" x="{cell.east * step:.2f}" y="{y:.2f}" width="{step:.2f}" height="{high:.2f}" '
                f'opacity="{shade:.2f}"/>'
            )
