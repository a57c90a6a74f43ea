"""Handwritten signs of arithmetic: strokes of a pen that wavers, leans and presses unevenly.

No two are alike, because every point of a stroke is moved a little by chance; the same chance writes the same line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Point: TypeAlias = tuple[float, float]
WIDTH = 0.62  # of a sign, in its height
SIGNS: Mapping[str, Sequence[Sequence[Sequence[Point]]]] = toml_of(Path(__file__).with_name("strokes.toml"))
"""Shapes of each sign, of which people use different ones; the strokes of a shape, and the points of a stroke."""


class Hand(NamedTuple):
    """How somebody writes: lean (how far x moves for y), unrest (of points, in a sign's height), the pen's width."""

    lean: float
    unrest: float
    pen: float
    colour: tuple[int, int, int]

    @classmethod
    def drawn(cls, chance: Random, colours: Sequence[tuple[int, int, int]]) -> Hand:
        """A hand drawn by chance."""
        lean, unrest, pen = chance.uniform(-0.05, 0.28), chance.uniform(0.012, 0.034), chance.uniform(0.05, 0.095)
        return cls(lean, unrest, pen, chance.choice(colours))


def write(paper: ImageDraw, line: str, where: tuple[float, float, float], hand: Hand, chance: Random) -> None:
    """Write a line; `where` is x and y of its upper left corner and the height of a sign, in pixels.

    Raises `UsageError` for a sign without a shape.
    """
    x, y, height = where
    for sign in line:
        if sign not in SIGNS:
            raise UsageError(f"no strokes are known for {sign!r}; there are: {' '.join(SIGNS)}")
        size = height * chance.uniform(0.92, 1.07)
        top = y + chance.uniform(-0.05, 0.05) * height
        for points in chance.choice(SIGNS[sign]):
            placed = []
            for point in points:
                across = point[0] + chance.gauss(0, hand.unrest)
                down = point[1] + chance.gauss(0, hand.unrest)
                placed.append((x + size * (across * WIDTH + hand.lean * (1 - down) * 0.6), top + size * down))
            _draw_stroke(paper, placed, hand.pen * height, hand, chance)
        x += height * (WIDTH * (0.6 if sign in " ." else 1) + chance.uniform(0.1, 0.2))


def stroke(paper: ImageDraw, ends: Sequence[Point], height: float, hand: Hand, chance: Random) -> None:
    """A line drawn without a ruler through these points, in pixels, with the pen of signs of this height."""
    points: list[Point] = []
    for (x, y), (next_x, next_y) in pairwise(ends):
        points.append((x, y))
        for share in (0.25, 0.5, 0.75):
            across = x + (next_x - x) * share + chance.gauss(0, hand.unrest * height)
            points.append((across, y + (next_y - y) * share + chance.gauss(0, hand.unrest * height)))
    _draw_stroke(paper, [*points, ends[-1]], hand.pen * height, hand, chance)


def length(line: str, height: float) -> float:
    """About how wide a line becomes, in pixels."""
    return sum(height * (WIDTH * (0.6 if sign in " ." else 1) + 0.15) for sign in line)


def _draw_stroke(paper: ImageDraw, points: Sequence[Point], pen: float, hand: Hand, chance: Random) -> None:
    """Draw dots so close that they are a line through the points, of a width that swells and thins."""
    swell, phase = chance.uniform(0.08, 0.22), chance.uniform(0, math.tau)
    for number, (x, y) in enumerate(_curve(points, max(1.0, pen / 5))):
        half = pen / 2 * (1 + swell * math.sin(phase + number / 14))
        paper.ellipse((x - half, y - half, x + half, y + half), fill=hand.colour)


def _curve(points: Sequence[Point], step: float) -> Iterator[Point]:
    """Points at most `step` apart on a curve through these (Catmull and Rom's)."""
    ends = [points[0], *points, points[-1]]
    for corners in zip(ends, ends[1:], ends[2:], ends[3:], strict=False):
        parts = max(2, int(math.dist(corners[1], corners[2]) / step))
        for t in (part / parts for part in range(parts + 1)):
            x, y = (
                0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
                for a, b, c, d in zip(*corners, strict=True)
            )
            yield x, y
