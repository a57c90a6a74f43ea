"""Printed letters: fonts that are here, and lines laid out in them.

What can be had differs by machine: two small Chinese fonts come with the package, Pillow brings a Latin one,
matplotlib others, and those of the system are found where it keeps them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SHIPPED = Path(__file__).parents[1] / "fonts"
PILLOW = "Pillow's own"  # a face without a file
FACES: Mapping[str, Sequence[tuple[str, int]]] = {  # files by what they are for, with the face's number in the file
    "text": (
        (PILLOW, 0),
        ("DejaVuSans.ttf", 0),
        ("DejaVuSerif.ttf", 0),
        ("DejaVuSans-Bold.ttf", 0),
        ("LiberationSans-Regular.ttf", 0),
        ("LiberationSerif-Regular.ttf", 0),
        ("LiberationSerif-Italic.ttf", 0),
        ("Humor-Sans.ttf", 0),
        ("Arial.ttf", 0),
        ("Georgia.ttf", 0),
        ("Verdana.ttf", 0),
    ),
    "code": (
        ("DejaVuSansMono.ttf", 0),
        ("DejaVuSansMono-Bold.ttf", 0),
        ("LiberationMono-Regular.ttf", 0),
        ("Menlo.ttc", 0),
        ("consola.ttf", 0),
        ("cmtt10.ttf", 0),
    ),
    "chinese": (
        ("EyespotSigns.otf", 0),
        ("EyespotBrush.ttf", 0),
        ("NotoSerifCJK-Regular.ttc", 2),
        ("NotoSansCJK-Bold.ttc", 2),
        ("wqy-microhei.ttc", 0),
        ("wqy-zenhei.ttc", 0),
        ("ukai.ttc", 0),
        ("simhei.ttf", 0),
        ("PingFang.ttc", 0),
    ),
}


class Face(NamedTuple):
    """A font's name, its file (None: Pillow's own) and which of the file's faces it is."""

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
    """The fonts for "text", "code" or "chinese" that are on this machine; of code Pillow's own if there is none."""
    known = _files()
    found = [
        Face(name.rpartition(".")[0] or name, known.get(name.lower()), number)
        for name, number in FACES[kind]
        if name == PILLOW or name.lower() in known
    ]
    return tuple(found) or (Face(PILLOW, None, 0),)


def face(kind: str, name: str) -> Face:
    """One of them by its name; `UsageError` if this machine has it not."""
    found = next((one for one in faces(kind) if one.name == name), None)
    if found is None:
        have = ", ".join(one.name for one in faces(kind))
        raise UsageError(f"the font {name} is not on this machine; install it, or draw anew with one of: {have}")
    return found


def _files() -> dict[str, Path]:
    """Font files by their name in lower case; those that come with the package before the system's."""
    wanted = {name.lower() for several in FACES.values() for name, _ in several}
    found: dict[str, Path] = {}
    for folder in _folders():
        for place, _, names in os.walk(folder):
            for name in sorted(names):
                if name.lower() in wanted:
                    found.setdefault(name.lower(), Path(place) / name)
    return found


def _folders() -> Iterator[Path]:
    yield SHIPPED
    matplotlib = find_spec("matplotlib")
    if matplotlib is not None and matplotlib.origin:
        yield Path(matplotlib.origin).parent / "mpl-data" / "fonts"
    if sys.platform == "win32":
        yield Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts"
    yield from map(Path, ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "/System/Library/Fonts"))
    yield from (Path.home() / name for name in (".fonts", ".local/share/fonts", "Library/Fonts"))


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


def centred(draw: ImageDraw, line: str, font: Any, middle: tuple[float, float], colour: tuple[int, int, int]) -> None:
    """A line with its middle there."""
    draw.text(middle, line, fill=colour, font=font, anchor="mm")
