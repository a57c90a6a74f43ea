"""Sums and plane figures by hand on a sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from eyespot.curate.recos.drawing.handwriting import Hand, Point, length, stroke, write
from eyespot.curate.recos.drawing.papers import Paper, photographed, sheet

if TYPE_CHECKING:
    from PIL.Image import Image


class Area(NamedTuple):
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
