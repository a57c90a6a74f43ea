"""Surfaces to write on, and how a camera sees them: sheets, boards and cards; light, noise, a turn, a blur."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, repeat
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

Colour: TypeAlias = tuple[int, int, int]
SIZE = (640, 480)
FINER = 2  # times as many pixels are painted as remain

BLUE, BLACK, RED, GREEN, GREY = (28, 52, 148), (32, 30, 34), (178, 30, 38), (22, 98, 60), (86, 84, 92)
CHALKS: tuple[Colour, ...] = ((244, 244, 236), (246, 232, 150), (190, 222, 244))


class Paper(NamedTuple):
    """A kind of paper: its name in a caption, its colour, its ruling, and the pens that write on it."""

    name: str
    colour: Colour
    ruling: str = ""  # lines or squares
    pens: tuple[Colour, ...] = (BLUE, BLACK, GREY)
    line: Colour = (172, 190, 216)


PAPERS: Mapping[str, Paper] = {
    paper.name: paper
    for paper in (
        Paper("white paper", (250, 249, 245)),
        Paper("lined paper", (252, 250, 240), "lines"),
        Paper("squared paper", (249, 251, 250), "squares"),
        Paper("a yellow sticky note", (252, 236, 134), pens=(BLACK, BLUE, RED)),
        Paper("brown wrapping paper", (196, 160, 116), pens=(BLACK, RED), line=(170, 136, 96)),
        Paper("a blackboard", (38, 58, 50), pens=CHALKS),
        Paper("a whiteboard", (244, 247, 250), pens=(BLUE, RED, GREEN, BLACK)),
    )
}


def sheet(paper: Paper, chance: Random, size: tuple[int, int] = SIZE) -> Image:
    """An empty sheet, `FINER` times as large as the picture will be."""
    from PIL import Image, ImageDraw

    made = Image.new("RGB", (size[0] * FINER, size[1] * FINER), paper.colour)
    if paper.ruling:
        draw, (width, height) = ImageDraw.Draw(made), made.size
        gap = FINER * chance.uniform(26, 40) * (0.7 if paper.ruling == "squares" else 1)
        for y in accumulate(repeat(gap, int(height / gap))):
            draw.line((0, y, width, y), fill=paper.line, width=FINER)
        for x in accumulate(repeat(gap, int(width / gap) if paper.ruling == "squares" else 0)):
            draw.line((x, 0, x, height), fill=paper.line, width=FINER)
    return made


def photographed(painted: Image, chance: Random) -> Image:
    """As a camera sees it: turned a little, brighter on one side, grainy, not quite sharp; at its final size."""
    from PIL import Image, ImageFilter

    edge = painted.getpixel((2, 2))
    small = painted.resize((painted.width // FINER, painted.height // FINER), Image.Resampling.BOX)
    turned = small.rotate(chance.uniform(-3.5, 3.5), Image.Resampling.BICUBIC, fillcolor=edge)
    soft = turned.filter(ImageFilter.GaussianBlur(chance.uniform(0, 0.7)))
    pixels = np.asarray(soft, np.float32)
    height, width, _ = pixels.shape
    x, y = np.linspace(-1, 1, width)[None], np.linspace(-1, 1, height)[:, None]
    light = 1 + chance.uniform(-0.1, 0.1) * x + chance.uniform(-0.1, 0.1) * y  # (height, width)
    light -= chance.uniform(0, 0.08)
    grain = np.random.default_rng(chance.getrandbits(32)).normal(0, chance.uniform(1.5, 6), pixels.shape)
    lit = np.clip(pixels * light[..., None] + grain, 0, 255).astype(np.uint8)
    return Image.fromarray(lit)
