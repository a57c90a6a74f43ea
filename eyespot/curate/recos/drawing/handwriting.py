"""Lines of signs and plane figures by hand.

Signs are strokes of a pen that wavers, leans and presses unevenly. No two are alike, because every point of a stroke is
moved a little by chance; the same random numbers write the same line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.curate.recos.drawing import Paper, photographed, sheet
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Point: TypeAlias = tuple[float, float]
WIDTH = 0.62  # of a sign, in its height
SIGNS: Mapping[str, Sequence[Sequence[Sequence[Point]]]] = toml_of(Path(__file__).with_name("strokes.toml"))
"""Shapes of each sign, of which people use different ones; the strokes of a shape, and the points of a stroke."""


@dataclass(frozen=True, slots=True)
class Hand:
    """How somebody writes: lean (how far x moves for y), unrest (of points, in a sign's height), the pen's width."""

    lean: float
    unrest: float
    pen: float
    colour: tuple[int, int, int]

    @classmethod
    def drawn(cls, rng: Random, colours: Sequence[tuple[int, int, int]]) -> Hand:
        """A hand drawn by chance."""
        lean, unrest, pen = rng.uniform(-0.05, 0.28), rng.uniform(0.012, 0.034), rng.uniform(0.05, 0.095)
        return cls(lean, unrest, pen, rng.choice(colours))


def write(paper: ImageDraw, line: str, where: tuple[float, float, float], hand: Hand, rng: Random) -> None:
    """Write a line; `where` is x and y of its upper left corner and the height of a sign, in pixels.

    Raises `UsageError` for a sign without a shape.
    """
    x, y, height = where
    for sign in line:
        if sign not in SIGNS:
            raise UsageError(f"no strokes are known for {sign!r}; there are: {' '.join(SIGNS)}")
        size = height * rng.uniform(0.92, 1.07)
        top = y + rng.uniform(-0.05, 0.05) * height
        for points in rng.choice(SIGNS[sign]):
            placed = []
            for point in points:
                across = point[0] + rng.gauss(0, hand.unrest)
                down = point[1] + rng.gauss(0, hand.unrest)
                placed.append((x + size * (across * WIDTH + hand.lean * (1 - down) * 0.6), top + size * down))
            _draw_stroke(paper, placed, hand.pen * height, hand, rng)
        x += height * (WIDTH * (0.6 if sign in " ." else 1) + rng.uniform(0.1, 0.2))


def stroke(paper: ImageDraw, ends: Sequence[Point], height: float, hand: Hand, rng: Random) -> None:
    """A line drawn without a ruler through these points, in pixels, with the pen of signs of this height."""
    points: list[Point] = []
    for (x, y), (next_x, next_y) in pairwise(ends):
        points.append((x, y))
        for share in (0.25, 0.5, 0.75):
            across = x + (next_x - x) * share + rng.gauss(0, hand.unrest * height)
            points.append((across, y + (next_y - y) * share + rng.gauss(0, hand.unrest * height)))
    _draw_stroke(paper, [*points, ends[-1]], hand.pen * height, hand, rng)


def length(line: str, height: float) -> float:
    """About how wide a line becomes, in pixels."""
    return sum(height * (WIDTH * (0.6 if sign in " ." else 1) + 0.15) for sign in line)


def _draw_stroke(paper: ImageDraw, points: Sequence[Point], pen: float, hand: Hand, rng: Random) -> None:
    """Draw dots so close that they are a line through the points, of a width that swells and thins."""
    swell, phase = rng.uniform(0.08, 0.22), rng.uniform(0, math.tau)
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


FIGURES: Mapping[str, Mapping[str, Any]] = toml_of(Path(__file__).with_name("figures.toml"))


def written(line: str, paper: Paper, rng: Random) -> Image:
    """A line of signs in the middle of a sheet."""
    from PIL import ImageDraw

    made, hand = sheet(paper, rng), Hand.drawn(rng, paper.pens)
    height = min(150.0, made.width * 0.84 / length(line, 1)) * rng.uniform(0.8, 1)
    x = (made.width - length(line, height)) * rng.uniform(0.3, 0.7)
    y = (made.height - height) * rng.uniform(0.3, 0.7)
    write(ImageDraw.Draw(made), line, (x, y, height), hand, rng)
    return photographed(made, rng)


def draw(figure: str, lengths: Sequence[int], paper: Paper, rng: Random) -> Image:
    """A figure with its lengths."""
    from PIL import ImageDraw

    made, hand, area = sheet(paper, rng), Hand.drawn(rng, paper.pens), FIGURES[figure]
    canvas, height = ImageDraw.Draw(made), 76.0

    def placed(point: Point) -> Point:
        return made.width * (0.08 + 0.82 * point[0]), made.height * (0.05 + 0.82 * point[1])

    corners = [placed(corner) for corner in area["outline"]]
    stroke(canvas, [*corners, corners[0]], height, hand, rng)
    if "inner" in area:
        stroke(canvas, [placed(end) for end in area["inner"]], height, replace(hand, pen=hand.pen / 2), rng)
    for mark, side in zip(area["marks"], lengths, strict=True):
        write(canvas, f"{side} cm", (*placed(mark), height), hand, rng)
    return photographed(made, rng)
