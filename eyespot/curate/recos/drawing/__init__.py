"""Drawn pictures: surfaces to write on, boards with printed letters, and how a camera sees them.

Each is drawn from what is written in its record and nothing else. Two small Chinese fonts come with the package, a
Latin one with Pillow, others with the system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, repeat
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image


Colour: TypeAlias = tuple[int, int, int]
SIZE = (640, 480)
FINER = 2  # times as many pixels are painted as remain


@dataclass(frozen=True)
class Paper:
    """A kind of paper: its name in a caption, its colour, its ruling, and the pens that write on it."""

    name: str
    colour: Colour
    ruling: str = ""  # lines or squares
    pens: tuple[Colour, ...] = ((28, 52, 148), (32, 30, 34), (86, 84, 92))  # blue, black, grey
    line: Colour = (172, 190, 216)


def _colours(value: Any) -> Any:
    """A table of TOML with colours as Pillow takes them."""
    if isinstance(value, dict):
        return {name: _colours(one) for name, one in value.items()}
    return tuple(map(_colours, value)) if isinstance(value, list) else value


SURFACES: Mapping[str, Mapping[str, Any]] = _colours(toml_of(Path(__file__).with_name("surfaces.toml")))
PAPERS: Mapping[str, Paper] = {name: Paper(name, **how) for name, how in SURFACES["papers"].items()}
BOARDS: Mapping[str, tuple[Colour, Colour]] = SURFACES["boards"]  # the board's colour, the letters'


def sheet(paper: Paper, rng: Random, size: tuple[int, int] = SIZE) -> Image:
    """An empty sheet, `FINER` times as large as the picture will be."""
    from PIL import Image, ImageDraw

    made = Image.new("RGB", (size[0] * FINER, size[1] * FINER), paper.colour)
    if paper.ruling:
        canvas, (width, height) = ImageDraw.Draw(made), made.size
        gap = FINER * rng.uniform(26, 40) * (0.7 if paper.ruling == "squares" else 1)
        for y in accumulate(repeat(gap, int(height / gap))):
            canvas.line((0, y, width, y), fill=paper.line, width=FINER)
        for x in accumulate(repeat(gap, int(width / gap) if paper.ruling == "squares" else 0)):
            canvas.line((x, 0, x, height), fill=paper.line, width=FINER)
    return made


def photographed(drawing: Image, rng: Random) -> Image:
    """As a camera sees it: turned a little, brighter on one side, grainy, not quite sharp; at its final size."""
    from PIL import Image, ImageFilter

    edge = drawing.getpixel((2, 2))
    small = drawing.resize((drawing.width // FINER, drawing.height // FINER), Image.Resampling.BOX)
    turned = small.rotate(rng.uniform(-3.5, 3.5), Image.Resampling.BICUBIC, fillcolor=edge)
    soft = turned.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.7)))
    pixels = np.asarray(soft, np.float32)
    height, width, _ = pixels.shape
    x, y = np.linspace(-1, 1, width)[None], np.linspace(-1, 1, height)[:, None]
    light = 1 + rng.uniform(-0.1, 0.1) * x + rng.uniform(-0.1, 0.1) * y  # (height, width)
    light -= rng.uniform(0, 0.08)
    grain = np.random.default_rng(rng.getrandbits(32)).normal(0, rng.uniform(1.5, 6), pixels.shape)
    lit = np.clip(pixels * light[..., None] + grain, 0, 255).astype(np.uint8)
    return Image.fromarray(lit)


SHIPPED = Path(__file__).parents[1] / "fonts"
PILLOW = "Pillow's own"  # a face without a file
FACES: Mapping[str, Sequence[str]] = SURFACES["faces"]  # files by what they are for
NUMBERS: Mapping[str, int] = SURFACES["numbers"]  # of the face in a file where it is not the first


@dataclass(frozen=True)
class Face:
    """A font's name, its file (None: Pillow's own) and the number of the face in the file."""

    name: str
    path: Path | None
    number: int

    def at(self, size: float) -> Any:
        """The font at this size, in pixels."""
        from PIL import ImageFont

        if self.path is None:
            return ImageFont.load_default(size)
        return ImageFont.truetype(str(self.path), size, index=self.number)


@cache
def faces(kind: str) -> tuple[Face, ...]:
    """The installed fonts for "text", "code" or "chinese"; Pillow's own if there is none."""
    found = []
    for name in FACES[kind]:
        # Pillow looks for a name without a folder among the system's fonts
        place = SHIPPED / name if (SHIPPED / name).is_file() else Path(name)
        font = Face(place.stem, None if name == PILLOW else place, NUMBERS.get(name, 0))
        with suppress(OSError):
            font.at(10)
            found.append(font)
    return tuple(found) or (Face(PILLOW, None, 0),)


def face(kind: str, name: str) -> Face:
    """One of them by its name; `UsageError` if this machine does not have it."""
    for known in faces(kind):
        if known.name == name:
            return known
    names = ", ".join(known.name for known in faces(kind))
    raise UsageError(f"the font {name} is not on this machine; install it, or draw anew with one of: {names}")


# -- lines ------------------------------------------------------------------------------------------------------


def fitting(face: Face, lines: Sequence[str], room: tuple[float, float], most: float) -> Any:
    """The font as large as these lines may be in a room (width, height), in pixels, and no larger than `most`."""
    size = most
    while size > 8:
        font = face.at(size)
        if max(font.getlength(line) for line in lines) <= room[0] and len(lines) * spacing(font) <= room[1]:
            return font
        size *= 0.92
    return face.at(8)


def spacing(font: Any) -> float:
    """From one line to the next, in pixels."""
    return float(font.size) * 1.35


# -- boards ---------------------------------------------------------------------------------------------------------


UNITS = {"menu": ("元", "yuan", (2, 60)), "direction": ("米", "m", (50, 900))}  # kinds that may have a number


# Texts in both languages, `chinese` and `english`, with their `kind` of sign
PHRASES: Sequence[Mapping[str, str]] = [row for _, row in rows_of(Path(__file__).with_name("phrases.csv"))]


def sample_phrase(rng: Random) -> Mapping[str, str]:
    """One of the texts; what is for sale may have a price, a direction a distance."""
    phrase = rng.choice(PHRASES)
    kind = phrase["kind"]
    if kind not in UNITS or rng.random() < 0.3:
        return phrase
    chinese, english, bounds = UNITS[kind]
    number = rng.randint(*bounds) // 5 * 5 if kind == "direction" else rng.randint(*bounds)
    texts = f"{phrase['chinese']} {number}{chinese}", f"{phrase['english']} {number} {english}"
    return {"chinese": texts[0], "english": texts[1], "kind": kind}


WALLS: tuple[Colour, ...] = ((204, 198, 188), (150, 158, 164), (186, 150, 128), (120, 134, 118), (214, 216, 218))


def sample_board(kind: str, rng: Random) -> dict[str, str]:
    """How a board might look: its colour, the wall's, and an installed font of this kind."""
    board, wall = rng.choice(list(BOARDS)), str(rng.randrange(len(WALLS)))
    return {"board": board, "wall": wall, "font": rng.choice(faces(kind)).name, "kind": kind}


def draw_board(text: str, how: Mapping[str, Any], rng: Random) -> Image:
    """The board on its wall; `UsageError` for a font that this machine does not have."""
    from PIL import ImageDraw

    made = sheet(Paper("a wall", WALLS[int(how["wall"])]), rng)
    canvas = ImageDraw.Draw(made)
    width, height = (side * FINER for side in SIZE)
    box = (width * rng.uniform(0.05, 0.12), height * rng.uniform(0.16, 0.28))
    inside = (box[0], box[1], width - box[0], height - box[1])
    board, letters = BOARDS[how["board"]]
    canvas.rounded_rectangle(inside, radius=rng.uniform(4, 46), fill=board, outline=letters, width=FINER * 4)
    words, lines = text.split(" "), [text]
    if len(text) >= 12 and len(words) > 1:  # in two lines of about one length, broken at a space
        pairs = [[" ".join(words[:count]), " ".join(words[count:])] for count in range(1, len(words))]
        lines = min(pairs, key=lambda pair: abs(len(pair[0]) - len(pair[1])))
    room = (inside[2] - inside[0]) * 0.86, (inside[3] - inside[1]) * 0.8
    font = fitting(face(how["kind"], how["font"]), lines, room, height * 0.3)
    for number, line in enumerate(lines):
        below = (number - (len(lines) - 1) / 2) * spacing(font)
        canvas.text((width / 2, height / 2 + below), line, fill=letters, font=font, anchor="mm")
    return photographed(made, rng)
