"""Programs as an editor shows them: a listing with its colours, line numbers perhaps, on a screen or on paper."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing.lettering import face, faces, fitting, spacing
from eyespot.curate.recos.drawing.papers import FINER, SIZE, Colour, Paper, photographed, sheet

if TYPE_CHECKING:
    from PIL.Image import Image

MARGIN = "00  "  # the room of a line number
THEMES: Mapping[str, Mapping[str, Colour]] = {
    "dark": {
        "page": (33, 36, 46),
        "plain": (222, 224, 230),
        "word": (224, 128, 190),
        "number": (240, 188, 112),
        "text": (150, 208, 128),
        "margin": (104, 110, 126),
    },
    "light": {
        "page": (253, 253, 251),
        "plain": (36, 40, 46),
        "word": (150, 32, 120),
        "number": (28, 92, 190),
        "text": (26, 122, 60),
        "margin": (168, 172, 178),
    },
    "printed": {
        "page": (248, 247, 242),
        "plain": (26, 26, 28),
        "word": (26, 26, 28),
        "number": (26, 26, 28),
        "text": (26, 26, 28),
        "margin": (140, 140, 140),
    },
    "blue": {
        "page": (10, 40, 92),
        "plain": (240, 240, 236),
        "word": (255, 214, 92),
        "number": (146, 226, 240),
        "text": (168, 240, 168),
        "margin": (110, 140, 190),
    },
}


def invent(chance: Random) -> dict[str, Any]:
    """How a listing might look."""
    return {
        "theme": chance.choice(list(THEMES)),
        "font": chance.choice(faces("code")).name,
        "numbered": chance.random() < 0.5,
    }


def paint(program: str, how: Mapping[str, Any], chance: Random) -> Image:
    """The listing; `UsageError` for a font that this machine has not."""
    from PIL import ImageDraw

    theme = THEMES[how["theme"]]
    made = sheet(Paper("a screen", theme["page"]), chance)
    draw = ImageDraw.Draw(made)
    lines = program.splitlines()
    font_face = face("code", how["font"])
    font_lines = [f"{MARGIN}{line}" for line in lines]
    room = (SIZE[0] * 0.8 * FINER, SIZE[1] * 0.88 * FINER)
    font = fitting(font_face, font_lines, room, 34 * FINER)
    left, top = 40 * FINER, max(30 * FINER, (made.height - len(lines) * spacing(font)) / 2)
    margin = font.getlength(MARGIN) if how["numbered"] else 0.0
    for number in range(1, len(lines) + 1 if how["numbered"] else 0):
        draw.text((left, top + (number - 1) * spacing(font)), f"{number:2d}", fill=theme["margin"], font=font)
    for kind, text, line, column in _coloured(program):
        x = left + margin + font.getlength(lines[line][:column])
        draw.text((x, top + line * spacing(font)), text, fill=theme[kind], font=font)
    return photographed(made, chance)


def _coloured(program: str) -> Iterator[tuple[str, str, int, int]]:
    """The parts of a program: what kind each is, its text, its line and column, from 0."""
    kinds = {tokenize.NUMBER: "number", tokenize.STRING: "text"}
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.string.strip():
            kind = "word" if keyword.iskeyword(token.string) else kinds.get(token.type, "plain")
            yield kind, token.string, token.start[0] - 1, token.start[1]
