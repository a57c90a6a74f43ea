"""Boards with a line or two of printed letters, and the short texts on them, in Chinese and in English."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.curate.recos.drawing import (
    FINER,
    SIZE,
    Colour,
    Paper,
    face,
    faces,
    fitting,
    photographed,
    sheet,
    spacing,
)
from eyespot.storage.tables import rows_of

if TYPE_CHECKING:
    from PIL.Image import Image

UNITS = {"menu": ("元", "yuan", (2, 60)), "direction": ("米", "m", (50, 900))}  # kinds that may have a number


class Phrase(NamedTuple):
    """A text in both languages, and its kind of sign."""

    chinese: str
    english: str
    kind: str


PHRASES = tuple(Phrase(**row) for _, row in rows_of(Path(__file__).with_name("phrases.csv")))


def sample_phrase(rng: Random) -> Phrase:
    """One of the texts; what is for sale may have a price, a direction a distance."""
    phrase = rng.choice(PHRASES)
    if phrase.kind not in UNITS or rng.random() < 0.3:
        return phrase
    chinese, english, bounds = UNITS[phrase.kind]
    number = rng.randint(*bounds) // 5 * 5 if phrase.kind == "direction" else rng.randint(*bounds)
    return Phrase(f"{phrase.chinese} {number}{chinese}", f"{phrase.english} {number} {english}", phrase.kind)


BOARDS: Mapping[str, tuple[Colour, Colour]] = {  # the board's colour, the letters'
    "white": ((246, 246, 244), (24, 24, 28)),
    "blue": ((24, 82, 160), (250, 250, 250)),
    "green": ((18, 108, 66), (250, 250, 246)),
    "red": ((184, 28, 36), (252, 250, 246)),
    "yellow": ((248, 206, 40), (22, 20, 18)),
    "black": ((30, 32, 36), (240, 236, 220)),
    "wooden": ((168, 122, 76), (44, 26, 14)),
}
WALLS: tuple[Colour, ...] = ((204, 198, 188), (150, 158, 164), (186, 150, 128), (120, 134, 118), (214, 216, 218))


def sample(kind: str, rng: Random) -> dict[str, str]:
    """How a board might look: its colour, the wall's, and an installed font of this kind."""
    board, wall = rng.choice(list(BOARDS)), str(rng.randrange(len(WALLS)))
    return {"board": board, "wall": wall, "font": rng.choice(faces(kind)).name, "kind": kind}


def draw(text: str, how: Mapping[str, Any], rng: Random) -> Image:
    """The board on its wall; `UsageError` for a font that this machine does not have."""
    from PIL import ImageDraw

    made = sheet(Paper("a wall", WALLS[int(how["wall"])]), rng)
    canvas = ImageDraw.Draw(made)
    width, height = (side * FINER for side in SIZE)
    box = (width * rng.uniform(0.05, 0.12), height * rng.uniform(0.16, 0.28))
    inside = (box[0], box[1], width - box[0], height - box[1])
    board, letters = BOARDS[how["board"]]
    canvas.rounded_rectangle(inside, radius=rng.uniform(4, 46), fill=board, outline=letters, width=FINER * 4)
    lines = _lines(text)
    room = (inside[2] - inside[0]) * 0.86, (inside[3] - inside[1]) * 0.8
    font = fitting(face(how["kind"], how["font"]), lines, room, height * 0.3)
    for number, line in enumerate(lines):
        below = (number - (len(lines) - 1) / 2) * spacing(font)
        canvas.text((width / 2, height / 2 + below), line, fill=letters, font=font, anchor="mm")
    return photographed(made, rng)


def _lines(text: str) -> list[str]:
    """A long text in two lines of about one length, broken at a space."""
    words = text.split(" ")
    if len(text) < 12 or len(words) < 2:
        return [text]
    pairs = [[" ".join(words[:count]), " ".join(words[count:])] for count in range(1, len(words))]
    return min(pairs, key=lambda pair: abs(len(pair[0]) - len(pair[1])))
