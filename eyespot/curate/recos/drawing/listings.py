"""Programs as an editor shows them: a listing with its colours, perhaps line numbers, on a screen or on paper."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.curate.recos.drawing.lettering import face, faces, fitting, spacing
from eyespot.curate.recos.drawing.papers import FINER, SIZE, Colour, Paper, photographed, sheet

if TYPE_CHECKING:
    from PIL.Image import Image


class Theme(NamedTuple):
    """The colours of a listing, by what they are for."""

    page: Colour
    plain: Colour
    word: Colour
    number: Colour
    text: Colour
    margin: Colour


MARGIN = "00  "  # the room of a line number
THEMES: Mapping[str, Theme] = {
    "dark": Theme((33, 36, 46), (222, 224, 230), (224, 128, 190), (240, 188, 112), (150, 208, 128), (104, 110, 126)),
    "light": Theme((253, 253, 251), (36, 40, 46), (150, 32, 120), (28, 92, 190), (26, 122, 60), (168, 172, 178)),
    "printed": Theme((248, 247, 242), (26, 26, 28), (26, 26, 28), (26, 26, 28), (26, 26, 28), (140, 140, 140)),
    "blue": Theme((10, 40, 92), (240, 240, 236), (255, 214, 92), (146, 226, 240), (168, 240, 168), (110, 140, 190)),
}


def invent(chance: Random) -> dict[str, Any]:
    """How a listing might look."""
    theme, font = chance.choice(list(THEMES)), chance.choice(faces("code")).name
    return {"theme": theme, "font": font, "numbered": chance.random() < 0.5}


def paint(program: str, how: Mapping[str, Any], chance: Random) -> Image:
    """The listing; `UsageError` for a font that this machine does not have."""
    from PIL import ImageDraw

    theme = THEMES[how["theme"]]
    made = sheet(Paper("a screen", theme.page), chance)
    draw = ImageDraw.Draw(made)
    lines = program.splitlines()
    room = (SIZE[0] * 0.8 * FINER, SIZE[1] * 0.88 * FINER)
    font = fitting(face("code", how["font"]), [f"{MARGIN}{line}" for line in lines], room, 34 * FINER)
    left, top = 40 * FINER, max(30 * FINER, (made.height - len(lines) * spacing(font)) / 2)
    margin = font.getlength(MARGIN) if how["numbered"] else 0.0
    for number in range(1, len(lines) + 1 if how["numbered"] else 0):
        draw.text((left, top + (number - 1) * spacing(font)), f"{number:2d}", fill=theme.margin, font=font)
    kinds = {tokenize.NUMBER: theme.number, tokenize.STRING: theme.text}
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.string.strip():
            colour = theme.word if keyword.iskeyword(token.string) else kinds.get(token.type, theme.plain)
            row, column = token.start  # the row from 1, the column from 0
            x = left + margin + font.getlength(lines[row - 1][:column])
            draw.text((x, top + (row - 1) * spacing(font)), token.string, fill=colour, font=font)
    return photographed(made, chance)
