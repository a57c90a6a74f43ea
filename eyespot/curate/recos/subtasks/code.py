"""Code reasoning: a short program as an editor shows it, on a screen or a page; a caption gives its output."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import (
    FINER,
    SIZE,
    SURFACES,
    Paper,
    face,
    faces,
    fitting,
    photographed,
    sheet,
    spacing,
)
from eyespot.curate.recos.subtasks import (
    CaptionWordings,
    Facts,
    Subtask,
    described,
    fill_captions,
    form_of,
    nearly,
    written,
)

if TYPE_CHECKING:
    from PIL.Image import Image


MARGIN = "00  "  # the room of a line number
THEMES = SURFACES["themes"]


class Programs:
    """Small programs of known kinds with other numbers, words and names each time."""

    def sample(self, rng: Random) -> dict[str, Any]:
        kind, shown, answer = written("programs", rng, printed)
        theme, font = rng.choice(list(THEMES)), rng.choice(faces("code")).name
        style = {"theme": theme, "font": font, "numbered": rng.random() < 0.5}
        return {"shown": shown.strip(), "answer": answer, "kind": kind, "painted": style}

    def sibling(self, facts: Facts, rng: Random) -> Facts | None:
        changed = nearly(facts["shown"], rng, printed, form_of("programs", facts["kind"]))
        return {**facts, "shown": changed[0], "answer": changed[1]} if changed else None

    def draw(self, facts: Facts, rng: Random) -> Image:
        from PIL import ImageDraw

        theme = THEMES[facts["painted"]["theme"]]
        made = sheet(Paper("a screen", theme["page"]), rng)
        canvas = ImageDraw.Draw(made)
        lines = facts["shown"].splitlines()
        room = (SIZE[0] * 0.8 * FINER, SIZE[1] * 0.88 * FINER)
        font = fitting(face("code", facts["painted"]["font"]), [f"{MARGIN}{line}" for line in lines], room, 34 * FINER)
        left, top = 40 * FINER, max(30 * FINER, (made.height - len(lines) * spacing(font)) / 2)
        margin = font.getlength(MARGIN) if facts["painted"]["numbered"] else 0.0
        for number in range(1, len(lines) + 1 if facts["painted"]["numbered"] else 0):
            canvas.text((left, top + (number - 1) * spacing(font)), f"{number:2d}", fill=theme["margin"], font=font)
        kinds = {tokenize.NUMBER: theme["number"], tokenize.STRING: theme["text"]}
        for token in tokenize.generate_tokens(io.StringIO(facts["shown"]).readline):
            if token.string.strip():
                colour = theme["word"] if keyword.iskeyword(token.string) else kinds.get(token.type, theme["plain"])
                row, column = token.start  # the row from 1, the column from 0
                x = left + margin + font.getlength(lines[row - 1][:column])
                canvas.text((x, top + (row - 1) * spacing(font)), token.string, fill=colour, font=font)
        return photographed(made, rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"kind": facts["kind"], "answer": facts["answer"], "theme": facts["painted"]["theme"]}
        return fill_captions("code", fields | {"first": facts["shown"].splitlines()[0]})


def printed(program: str) -> str:
    """What a program prints, the values of a line apart by spaces; "" for one that ends in an error.

    Programs are those of `written.toml` alone: short, and none loops without end.
    """
    lines: list[str] = []
    names = {name: getattr(builtins, name) for name in ("range", "sum", "max", "min", "sorted", "len", "str")}
    try:
        exec(program, {"__builtins__": names, "print": lambda *values: lines.append(" ".join(map(str, values)))})
    except (IndexError, ZeroDivisionError):
        return ""
    return "\n".join(lines)


def load() -> Subtask:
    """The sub-task."""
    return described("code", Programs())
