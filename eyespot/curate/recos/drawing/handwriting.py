"""Sums and plane figures by hand, and the exact value of the arithmetic in them.

Signs are strokes of a pen that wavers, leans and presses unevenly. No two are alike, because every point of a stroke is
moved a little by chance; the same chance writes the same line.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from eyespot.curate.recos.drawing import Paper, photographed, sheet
from eyespot.storage.toml import toml_of
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


_SAME = str.maketrans({"−": "-", "×": "*", "÷": "/"})
_OPERATIONS: Mapping[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(expression: str) -> Fraction:
    """The value: products before sums, from left to right; `UsageError` for an expression without one.

    `evaluate("(7 + 5) × 3 ÷ 4")` is 9.
    """
    try:
        if re.search(r"[^\d\s.+−×÷*/()-]", expression):
            raise SyntaxError
        return _value(ast.parse(expression.strip().translate(_SAME), mode="eval").body)
    except ZeroDivisionError:
        raise UsageError(f"{expression!r} divides by zero; change the divisor") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{expression!r} is not arithmetic; write numbers, + − × ÷ and brackets in pairs") from None


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left), _value(right))
        case _:
            raise SyntaxError


def plain(value: Fraction) -> str:
    """A value in digits: "12", "2.5"; as a fraction where its decimals never end."""
    if value.denominator == 1:
        return str(value.numerator)
    decimals = f"{float(value):.6f}".rstrip("0")
    return decimals if Fraction(decimals) == value else f"{value.numerator}/{value.denominator}"


@dataclass(frozen=True)
class Area:
    """The formula of an area, and the places of corners and lengths, as shares of the drawing's room."""

    expression: Callable[..., str]
    outline: tuple[Point, ...]
    marks: tuple[Point, ...]  # where each length is written
    inner: tuple[Point, Point] | None = None  # a height, drawn inside


AREAS: Mapping[str, Area] = {
    "square": Area(lambda a: f"{a}×{a}", ((0.3, 0.15), (0.7, 0.15), (0.7, 0.8), (0.3, 0.8)), ((0.4, 0.83),)),
    "rectangle": Area(
        lambda a, b: f"{a}×{b}", ((0.12, 0.22), (0.78, 0.22), (0.78, 0.72), (0.12, 0.72)), ((0.36, 0.76), (0.8, 0.4))
    ),
    "triangle": Area(
        lambda a, h: f"{a}×{h}÷2",
        ((0.12, 0.76), (0.85, 0.76), (0.45, 0.1)),
        ((0.36, 0.8), (0.47, 0.42)),
        ((0.45, 0.1), (0.45, 0.76)),
    ),
    "parallelogram": Area(
        lambda a, h: f"{a}×{h}",
        ((0.08, 0.74), (0.62, 0.74), (0.88, 0.2), (0.34, 0.2)),
        ((0.26, 0.78), (0.37, 0.4)),
        ((0.34, 0.2), (0.34, 0.74)),
    ),
    "trapezium": Area(
        lambda a, b, h: f"({a}+{b})×{h}÷2",
        ((0.08, 0.76), (0.86, 0.76), (0.66, 0.2), (0.3, 0.2)),
        ((0.36, 0.8), (0.42, 0.02), (0.33, 0.44)),
        ((0.3, 0.2), (0.3, 0.76)),
    ),
}


def sides(figure: str, chance: Random) -> list[int]:
    """Lengths in centimetres whose area is a whole number."""
    if figure == "square":
        return [chance.randint(2, 15)]
    if figure in ("rectangle", "parallelogram"):
        return [chance.randint(6, 20), chance.randint(2, 9)]
    height = 2 * chance.randint(1, 6)
    if figure == "triangle":
        return [chance.randint(5, 20), height]
    return [chance.randint(9, 20), chance.randint(3, 8), height]


def written(line: str, paper: Paper, chance: Random) -> Image:
    """A line of signs in the middle of a sheet."""
    from PIL import ImageDraw

    made, hand = sheet(paper, chance), Hand.drawn(chance, paper.pens)
    height = min(150.0, made.width * 0.84 / length(line, 1)) * chance.uniform(0.8, 1)
    x = (made.width - length(line, height)) * chance.uniform(0.3, 0.7)
    y = (made.height - height) * chance.uniform(0.3, 0.7)
    write(ImageDraw.Draw(made), line, (x, y, height), hand, chance)
    return photographed(made, chance)


def paint(figure: str, lengths: Sequence[int], paper: Paper, chance: Random) -> Image:
    """A figure with its lengths."""
    from PIL import ImageDraw

    made, hand, area = sheet(paper, chance), Hand.drawn(chance, paper.pens), AREAS[figure]
    draw, height = ImageDraw.Draw(made), 76.0

    def placed(point: Point) -> Point:
        return made.width * (0.08 + 0.82 * point[0]), made.height * (0.05 + 0.82 * point[1])

    corners = [placed(corner) for corner in area.outline]
    stroke(draw, [*corners, corners[0]], height, hand, chance)
    if area.inner is not None:
        stroke(draw, [placed(end) for end in area.inner], height, hand._replace(pen=hand.pen / 2), chance)
    for mark, side in zip(area.marks, lengths, strict=True):
        write(draw, f"{side} cm", (*placed(mark), height), hand, chance)
    return photographed(made, chance)
