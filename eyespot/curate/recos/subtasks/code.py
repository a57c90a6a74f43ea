"""Code reasoning: a short program as an editor shows it, on a screen or a page; a caption gives its output."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import FINER, SIZE, Colour, Paper, face, faces, fitting, photographed, sheet, spacing
from eyespot.curate.recos.subtasks import COGNITIVE, CaptionWordings, Facts, Subtask, fill_captions

if TYPE_CHECKING:
    from PIL.Image import Image

WORDS = ("heron", "river", "lantern", "meadow", "copper", "violet", "harbour", "candle", "maple", "falcon")
NAMES = ("n", "x", "total", "count", "value", "result")
KINDS = (
    *("a loop that adds up", "a condition", "a while loop", "a list of numbers", "a loop that counts"),
    *("a text that is cut and joined", "two numbers that grow"),
)


@dataclass(frozen=True)
class Theme:
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


class Programs:
    """Small programs of known kinds with other numbers, words and names each time."""

    def sample(self, rng: Random) -> dict[str, Any]:
        kind = rng.choice(KINDS)
        shown, answer = write_program(kind, rng)
        theme, font = rng.choice(list(THEMES)), rng.choice(faces("code")).name
        style = {"theme": theme, "font": font, "numbered": rng.random() < 0.5}
        return {"shown": shown, "answer": answer, "kind": kind, "painted": style}

    def draw(self, facts: Facts, rng: Random) -> Image:
        from PIL import ImageDraw

        theme = THEMES[facts["painted"]["theme"]]
        made = sheet(Paper("a screen", theme.page), rng)
        canvas = ImageDraw.Draw(made)
        lines = facts["shown"].splitlines()
        room = (SIZE[0] * 0.8 * FINER, SIZE[1] * 0.88 * FINER)
        font = fitting(face("code", facts["painted"]["font"]), [f"{MARGIN}{line}" for line in lines], room, 34 * FINER)
        left, top = 40 * FINER, max(30 * FINER, (made.height - len(lines) * spacing(font)) / 2)
        margin = font.getlength(MARGIN) if facts["painted"]["numbered"] else 0.0
        for number in range(1, len(lines) + 1 if facts["painted"]["numbered"] else 0):
            canvas.text((left, top + (number - 1) * spacing(font)), f"{number:2d}", fill=theme.margin, font=font)
        kinds = {tokenize.NUMBER: theme.number, tokenize.STRING: theme.text}
        for token in tokenize.generate_tokens(io.StringIO(facts["shown"]).readline):
            if token.string.strip():
                colour = theme.word if keyword.iskeyword(token.string) else kinds.get(token.type, theme.plain)
                row, column = token.start  # the row from 1, the column from 0
                x = left + margin + font.getlength(lines[row - 1][:column])
                canvas.text((x, top + (row - 1) * spacing(font)), token.string, fill=colour, font=font)
        return photographed(made, rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"kind": facts["kind"], "answer": facts["answer"], "theme": facts["painted"]["theme"]}
        return fill_captions("code", fields | {"first": facts["shown"].splitlines()[0]})


def write_program(kind: str, rng: Random) -> tuple[str, str]:
    """A program of this kind with random numbers and names, and what it prints."""
    number = rng.randint
    match kind:
        case "a loop that adds up":
            name, end, step, start = rng.choice(NAMES), number(4, 12), number(1, 3), number(0, 9)
            loop = f"for i in range({end}):\n    {name} += i * {step}"
            return f"{name} = {start}\n{loop}\nprint({name})", str(start + step * sum(range(end)))
        case "a condition":
            a, b, times = number(2, 30), number(2, 30), number(2, 5)
            ways = f"if a > b:\n    print(a - b)\nelif a == b:\n    print(0)\nelse:\n    print(a * {times})"
            return f"a = {a}\nb = {b}\n{ways}", str(a - b if a >= b else a * times)
        case "a while loop":
            name, limit, start = rng.choice(NAMES), number(20, 90), number(1, 5)
            loop = f"while {name} < {limit}:\n    {name} = {name} * 2 + 1\n    steps += 1"
            value, steps = start, 0
            while value < limit:
                value, steps = value * 2 + 1, steps + 1
            return f"{name} = {start}\nsteps = 0\n{loop}\nprint({name}, steps)", f"{value} {steps}"
        case "a list of numbers":
            numbers = [number(1, 40) for _ in range(number(4, 6))]
            values = {
                "sum(numbers)": sum(numbers),
                "max(numbers) - min(numbers)": max(numbers) - min(numbers),
                "sorted(numbers)[1]": sorted(numbers)[1],
                "numbers[-1] + len(numbers)": numbers[-1] + len(numbers),
            }
            shown = rng.choice(list(values))
            return f"numbers = {numbers}\nprint({shown})", str(values[shown])
        case "a loop that counts":
            numbers, divisor = [number(1, 30) for _ in range(number(5, 7))], number(2, 4)
            loop = f"for number in {numbers}:\n    if number % {divisor} == 0:\n        found += 1"
            return f"found = 0\n{loop}\nprint(found)", str(sum(one % divisor == 0 for one in numbers))
        case _:
            return _write_other(kind, rng)


def _write_other(kind: str, rng: Random) -> tuple[str, str]:
    number = rng.randint
    if kind == "a text that is cut and joined":
        word, end, times = rng.choice(WORDS), number(2, 4), number(2, 9)
        texts = {
            "word[::-1]": word[::-1],
            f"word[:{end}] * 2": word[:end] * 2,
            f"word + str(len(word) * {times})": word + str(len(word) * times),
        }
        shown = rng.choice(list(texts))
        return f'word = "{word}"\nprint({shown})', texts[shown]
    rounds, first, second = number(3, 8), number(0, 3), number(1, 4)  # two numbers that grow
    loop = f"for i in range({rounds}):\n    c = a + b\n    a = b\n    b = c"
    a, b = first, second
    for _ in range(rounds):
        a, b = b, a + b
    return f"a = {first}\nb = {second}\n{loop}\nprint(b)", str(b)


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "code",
        COGNITIVE,
        30,
        "Tells what the program in the picture prints, without repeating it line by line.",
        ("output", "structure"),
        generator=Programs(),
    )
