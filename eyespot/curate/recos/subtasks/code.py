"""Code reasoning: a short program on a screen or a page; a caption gives its output."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import programs
from eyespot.curate.recos.drawing.programs import printed
from eyespot.curate.recos.subtasks import COGNITIVE, CaptionWordings, Facts, Subtask, fill_captions

if TYPE_CHECKING:
    from PIL.Image import Image

WORDS = ("heron", "river", "lantern", "meadow", "copper", "violet", "harbour", "candle", "maple", "falcon")
NAMES = ("n", "x", "total", "count", "value", "result")
KINDS = (
    *("a loop that adds up", "a condition", "a while loop", "a list of numbers", "a loop that counts"),
    *("a text that is cut and joined", "two numbers that grow"),
)


class Programs:
    """Small programs of known kinds with other numbers, words and names each time."""

    def invent(self, chance: Random) -> dict[str, Any]:
        kind = chance.choice(KINDS)
        shown = write_program(kind, chance)
        return {"shown": shown, "answer": printed(shown), "kind": kind, "painted": programs.invent(chance)}

    def answer(self, facts: Facts) -> str:
        return printed(facts["shown"])

    def paint(self, facts: Facts, chance: Random) -> Image:
        return programs.paint(facts["shown"], facts["painted"], chance)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"kind": facts["kind"], "answer": facts["answer"], "theme": facts["painted"]["theme"]}
        return fill_captions("code", fields | {"first": facts["shown"].splitlines()[0]})


def write_program(kind: str, chance: Random) -> str:
    """A program of this kind, whose numbers and names are drawn by chance."""
    number = chance.randint
    match kind:
        case "a loop that adds up":
            name, end, step = chance.choice(NAMES), number(4, 12), number(1, 3)
            return f"{name} = {number(0, 9)}\nfor i in range({end}):\n    {name} += i * {step}\nprint({name})"
        case "a condition":
            a, b, times = number(2, 30), number(2, 30), number(2, 5)
            ways = f"if a > b:\n    print(a - b)\nelif a == b:\n    print(0)\nelse:\n    print(a * {times})"
            return f"a = {a}\nb = {b}\n{ways}"
        case "a while loop":
            name, limit = chance.choice(NAMES), number(20, 90)
            loop = f"while {name} < {limit}:\n    {name} = {name} * 2 + 1\n    steps += 1"
            return f"{name} = {number(1, 5)}\nsteps = 0\n{loop}\nprint({name}, steps)"
        case "a list of numbers":
            numbers = [number(1, 40) for _ in range(number(4, 6))]
            values = ("sum(numbers)", "max(numbers) - min(numbers)", "sorted(numbers)[1]", "numbers[-1] + len(numbers)")
            return f"numbers = {numbers}\nprint({chance.choice(values)})"
        case "a loop that counts":
            numbers = [number(1, 30) for _ in range(number(5, 7))]
            loop = f"for number in {numbers}:\n    if number % {number(2, 4)} == 0:\n        found += 1"
            return f"found = 0\n{loop}\nprint(found)"
        case "a text that is cut and joined":
            word, end, times = chance.choice(WORDS), number(2, 4), number(2, 9)
            texts = ("word[::-1]", f"word[:{end}] * 2", f"word + str(len(word) * {times})")
            return f'word = "{word}"\nprint({chance.choice(texts)})'
        case _:  # two numbers that grow
            loop = f"for i in range({number(3, 8)}):\n    c = a + b\n    a = b\n    b = c"
            return f"a = {number(0, 3)}\nb = {number(1, 4)}\n{loop}\nprint(b)"


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
