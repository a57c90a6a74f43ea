"""Signs of arithmetic as a hand writes them: strokes of a pen that wavers, leans and presses unevenly.

No two are alike, for every point of a stroke is moved a little by chance; the same chance writes the same line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Point: TypeAlias = tuple[float, float]
Stroke: TypeAlias = tuple[Point, ...]  # x to the right, y down, both 0 to 1; the pen passes through each point
Shape: TypeAlias = tuple[Stroke, ...]

WIDTH = 0.62  # of a sign, in its height
SIGNS: Mapping[str, tuple[Shape, ...]] = {  # several shapes of a sign: people differ
    "0": (
        (((0.55, 0.03), (0.2, 0.2), (0.08, 0.55), (0.28, 0.95), (0.7, 0.93), (0.92, 0.5), (0.78, 0.1), (0.5, 0.02)),),
    ),
    "1": ((((0.2, 0.28), (0.55, 0.03), (0.52, 0.5), (0.5, 0.98)),), (((0.52, 0.02), (0.5, 0.5), (0.46, 0.98)),)),
    "2": (
        (
            ((0.12, 0.27), (0.3, 0.06), (0.66, 0.05), (0.82, 0.26), (0.62, 0.55), (0.12, 0.95)),
            ((0.12, 0.95), (0.5, 0.92), (0.92, 0.95)),
        ),
    ),
    "3": (
        (
            ((0.14, 0.14), (0.5, 0.02), (0.8, 0.2), (0.66, 0.42), (0.38, 0.48)),
            ((0.38, 0.48), (0.76, 0.56), (0.86, 0.78), (0.56, 0.97), (0.1, 0.88)),
        ),
    ),
    "4": (
        (((0.62, 0.02), (0.36, 0.36), (0.06, 0.68)), ((0.06, 0.68), (0.94, 0.66)), ((0.68, 0.36), (0.66, 0.98))),
        (((0.2, 0.04), (0.14, 0.5), (0.5, 0.54), (0.86, 0.5)), ((0.74, 0.05), (0.7, 0.55), (0.68, 0.98))),
    ),
    "5": (
        (
            ((0.26, 0.05), (0.2, 0.42)),
            ((0.2, 0.42), (0.56, 0.36), (0.86, 0.62), (0.6, 0.95), (0.1, 0.9)),
            ((0.26, 0.05), (0.84, 0.04)),
        ),
    ),
    "6": (
        (
            (
                (0.72, 0.04),
                (0.34, 0.26),
                (0.12, 0.68),
                (0.38, 0.97),
                (0.78, 0.84),
                (0.72, 0.56),
                (0.38, 0.52),
                (0.14, 0.72),
            ),
        ),
    ),
    "7": (
        (((0.1, 0.06), (0.5, 0.08), (0.9, 0.05)), ((0.9, 0.05), (0.6, 0.45), (0.42, 0.98))),
        (
            ((0.1, 0.08), (0.9, 0.05)),
            ((0.9, 0.05), (0.6, 0.45), (0.4, 0.98)),
            ((0.34, 0.5), (0.78, 0.48)),
        ),
    ),
    "8": (
        (
            ((0.78, 0.16), (0.5, 0.02), (0.2, 0.2), (0.46, 0.46), (0.84, 0.72), (0.52, 0.98), (0.14, 0.78)),
            ((0.14, 0.78), (0.42, 0.52), (0.74, 0.3), (0.78, 0.16)),
        ),
    ),
    "9": (
        (((0.84, 0.22), (0.5, 0.03), (0.16, 0.24), (0.36, 0.5), (0.74, 0.42), (0.84, 0.2), (0.8, 0.6), (0.62, 0.98)),),
    ),
    "+": ((((0.5, 0.24), (0.48, 0.8)), ((0.18, 0.52), (0.82, 0.51))),),
    "−": ((((0.16, 0.52), (0.5, 0.51), (0.84, 0.53)),),),
    "×": ((((0.22, 0.3), (0.78, 0.76)), ((0.76, 0.28), (0.24, 0.78))),),
    "÷": ((((0.14, 0.52), (0.86, 0.51)), ((0.49, 0.28), (0.51, 0.3)), ((0.49, 0.74), (0.51, 0.76))),),
    "=": ((((0.16, 0.42), (0.84, 0.4)), ((0.16, 0.62), (0.84, 0.61))),),
    "(": ((((0.66, -0.04), (0.4, 0.24), (0.36, 0.72), (0.62, 1.06)),),),
    ")": ((((0.36, -0.04), (0.62, 0.24), (0.66, 0.72), (0.4, 1.06)),),),
    "?": (
        (
            ((0.2, 0.24), (0.4, 0.04), (0.74, 0.14), (0.68, 0.42), (0.48, 0.56), (0.48, 0.7)),
            ((0.47, 0.93), (0.49, 0.95)),
        ),
    ),
    "c": ((((0.78, 0.52), (0.5, 0.4), (0.2, 0.64), (0.34, 0.94), (0.8, 0.86)),),),
    "m": (
        (
            ((0.1, 0.42), (0.12, 0.96)),
            ((0.12, 0.6), (0.3, 0.42), (0.46, 0.56), (0.46, 0.96)),
            ((0.46, 0.6), (0.66, 0.42), (0.84, 0.56), (0.86, 0.96)),
        ),
    ),
    ".": ((((0.3, 0.94), (0.33, 0.97)),),),
    " ": ((),),
}


class Hand(NamedTuple):
    """How somebody writes: lean (how far x moves for y), unrest (of points, in a sign's height), the pen's width."""

    lean: float
    unrest: float
    pen: float
    colour: tuple[int, int, int]

    @classmethod
    def drawn(cls, chance: Random, colours: Sequence[tuple[int, int, int]]) -> Hand:
        """Anybody's."""
        return cls(
            chance.uniform(-0.05, 0.28),
            chance.uniform(0.012, 0.034),
            chance.uniform(0.05, 0.095),
            chance.choice(colours),
        )


def write(paper: ImageDraw, line: str, where: tuple[float, float, float], hand: Hand, chance: Random) -> float:
    """Write a line; `where` is x and y of its upper left corner and the height of a sign, in pixels.

    The x at which the pen stops. Raises `UsageError` for a sign that no hand here knows.
    """
    x, y, height = where
    for sign in line:
        if sign not in SIGNS:
            raise UsageError(f"no hand writes {sign!r}; there are: {' '.join(SIGNS)}")
        size = height * chance.uniform(0.92, 1.07)
        top = y + chance.uniform(-0.05, 0.05) * height
        for stroke in chance.choice(SIGNS[sign]):
            _pull(
                paper,
                [_placed(point, (x, top, size), hand, chance) for point in stroke],
                hand.pen * height,
                hand,
                chance,
            )
        x += height * (WIDTH * (0.6 if sign in " ." else 1) + chance.uniform(0.1, 0.2))
    return x


def stroke(paper: ImageDraw, ends: Sequence[Point], height: float, hand: Hand, chance: Random) -> None:
    """A line drawn without a ruler through these points, in pixels, with the pen of signs of this height."""
    between = [
        _wavering(one, other, share / 4, hand.unrest * height, chance)
        for one, other in pairwise(ends)
        for share in range(4)
    ]
    _pull(paper, [*between, ends[-1]], hand.pen * height, hand, chance)


def length(line: str, height: float) -> float:
    """About how wide a line becomes, in pixels."""
    return sum(height * (WIDTH * (0.6 if sign in " ." else 1) + 0.15) for sign in line)


def _wavering(one: Point, other: Point, share: float, unrest: float, chance: Random) -> Point:
    x, y = (a + (b - a) * share for a, b in zip(one, other, strict=True))
    return (x + chance.gauss(0, unrest), y + chance.gauss(0, unrest)) if share else (x, y)


def _placed(point: Point, where: tuple[float, float, float], hand: Hand, chance: Random) -> Point:
    x, y, size = where
    across = point[0] + chance.gauss(0, hand.unrest)
    down = point[1] + chance.gauss(0, hand.unrest)
    return x + size * (across * WIDTH + hand.lean * (1 - down) * 0.6), y + size * down


def _pull(paper: ImageDraw, points: Sequence[Point], pen: float, hand: Hand, chance: Random) -> None:
    """Pull the pen through the points: dots so close that they are a line, of a width that swells and thins."""
    swell, phase = chance.uniform(0.08, 0.22), chance.uniform(0, math.tau)
    for at, (x, y) in enumerate(_smooth(points, max(1.0, pen / 5))):
        half = pen / 2 * (1 + swell * math.sin(phase + at / 14))
        paper.ellipse((x - half, y - half, x + half, y + half), fill=hand.colour)


def _smooth(points: Sequence[Point], step: float) -> Iterator[Point]:
    """Points no further apart than `step` on a curve (Catmull and Rom's) through these."""
    held = [points[0], *points, points[-1]]
    for before, one, other, after in zip(held, held[1:], held[2:], held[3:], strict=False):
        parts = max(2, int(math.dist(one, other) / step))
        for part in range(parts + 1):
            yield _between(before, one, other, after, part / parts)


def _between(before: Point, one: Point, other: Point, after: Point, t: float) -> Point:
    def along(a: float, b: float, c: float, d: float) -> float:
        return 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)

    return along(before[0], one[0], other[0], after[0]), along(before[1], one[1], other[1], after[1])
