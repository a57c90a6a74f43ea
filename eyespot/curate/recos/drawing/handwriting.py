"""Lines of signs and plane figures by hand, and the areas of these.

Signs are strokes of a pen that wavers, leans and presses unevenly. No two are alike, because every point of a stroke is
moved a little by chance; the same random numbers write the same line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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


class Hand(NamedTuple):
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


@dataclass(frozen=True)
class Area:
    """An area as it is written and what it comes to, and the places of corners and lengths, as shares of the room."""

    expression: Callable[..., str]
    value: Callable[..., int]
    outline: tuple[Point, ...]
    marks: tuple[Point, ...]  # where each length is written
    inner: tuple[Point, Point] | None = None  # a height, drawn inside


AREAS: Mapping[str, Area] = {
    "square": Area(
        lambda a: f"{a}×{a}", lambda a: a * a, ((0.3, 0.15), (0.7, 0.15), (0.7, 0.8), (0.3, 0.8)), ((0.4, 0.83),)
    ),
    "rectangle": Area(
        lambda a, b: f"{a}×{b}",
        lambda a, b: a * b,
        ((0.12, 0.22), (0.78, 0.22), (0.78, 0.72), (0.12, 0.72)),
        ((0.36, 0.76), (0.8, 0.4)),
    ),
    "triangle": Area(
        lambda a, h: f"{a}×{h}÷2",
        lambda a, h: a * h // 2,
        ((0.12, 0.76), (0.85, 0.76), (0.45, 0.1)),
        ((0.36, 0.8), (0.47, 0.42)),
        ((0.45, 0.1), (0.45, 0.76)),
    ),
    "parallelogram": Area(
        lambda a, h: f"{a}×{h}",
        lambda a, h: a * h,
        ((0.08, 0.74), (0.62, 0.74), (0.88, 0.2), (0.34, 0.2)),
        ((0.26, 0.78), (0.37, 0.4)),
        ((0.34, 0.2), (0.34, 0.74)),
    ),
    "trapezium": Area(
        lambda a, b, h: f"({a}+{b})×{h}÷2",
        lambda a, b, h: (a + b) * h // 2,
        ((0.08, 0.76), (0.86, 0.76), (0.66, 0.2), (0.3, 0.2)),
        ((0.36, 0.8), (0.42, 0.02), (0.33, 0.44)),
        ((0.3, 0.2), (0.3, 0.76)),
    ),
}


def sides(figure: str, rng: Random) -> list[int]:
    """Lengths in centimetres whose area is a whole number."""
    if figure == "square":
        return [rng.randint(2, 15)]
    if figure in ("rectangle", "parallelogram"):
        return [rng.randint(6, 20), rng.randint(2, 9)]
    height = 2 * rng.randint(1, 6)
    if figure == "triangle":
        return [rng.randint(5, 20), height]
    return [rng.randint(9, 20), rng.randint(3, 8), height]


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

    made, hand, area = sheet(paper, rng), Hand.drawn(rng, paper.pens), AREAS[figure]
    canvas, height = ImageDraw.Draw(made), 76.0

    def placed(point: Point) -> Point:
        return made.width * (0.08 + 0.82 * point[0]), made.height * (0.05 + 0.82 * point[1])

    corners = [placed(corner) for corner in area.outline]
    stroke(canvas, [*corners, corners[0]], height, hand, rng)
    if area.inner is not None:
        stroke(canvas, [placed(end) for end in area.inner], height, hand._replace(pen=hand.pen / 2), rng)
    for mark, side in zip(area.marks, lengths, strict=True):
        write(canvas, f"{side} cm", (*placed(mark), height), hand, rng)
    return photographed(made, rng)
