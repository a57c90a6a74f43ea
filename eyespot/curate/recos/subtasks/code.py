"""Code reasoning: a short program on a screen or a page; a caption tells what it prints."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import listings
from eyespot.curate.recos.drawing.generator import CaptionWordings, Facts
from eyespot.curate.recos.drawing.programs import printed
from eyespot.curate.recos.subtasks import COGNITIVE, Subtask

if TYPE_CHECKING:
    from PIL.Image import Image

WORDS = ("heron", "river", "lantern", "meadow", "copper", "violet", "harbour", "candle", "maple", "falcon")


class Programs:
    """Small programs of known kinds with other numbers, words and names each time."""

    def invent(self, chance: Random) -> dict[str, Any]:
        kind, make = chance.choice(_KINDS)
        shown = make(chance)
        return {"shown": shown, "answer": printed(shown), "kind": kind, "painted": listings.invent(chance)}

    def answer(self, facts: Facts) -> str:
        return printed(facts["shown"])

    def paint(self, facts: Facts, chance: Random) -> Image:
        return listings.paint(facts["shown"], facts["painted"], chance)

    def wording(self, facts: Facts) -> CaptionWordings:
        kind, answer, theme = facts["kind"], facts["answer"], facts["painted"]["theme"]
        vague = [
            f"A program with {kind}.",
            "A few lines of code.",
            f"Code in {theme} colours.",
            f"A short listing, with {kind}.",
            f"Python code in which there is {kind}.",
        ]
        usual = [
            f"Code that prints {answer}.",
            f"A program with {kind} whose output is {answer}.",
            f"When this code is run, {answer} is printed.",
            f"A short program; {answer} is what it shows.",
            f"The result of this listing is {answer}.",
        ]
        first = facts["shown"].splitlines()[0]
        detailed = [f'{one.removesuffix(".")}; its first line is "{first}".' for one in usual]
        return CaptionWordings(vague, usual, detailed)


def _name(chance: Random) -> str:
    return chance.choice(("n", "x", "total", "count", "value", "result"))


def _loop(chance: Random) -> str:
    name, end, step = _name(chance), chance.randint(4, 12), chance.randint(1, 3)
    return f"{name} = {chance.randint(0, 9)}\nfor i in range({end}):\n    {name} += i * {step}\nprint({name})"


def _condition(chance: Random) -> str:
    one, other, times = chance.randint(2, 30), chance.randint(2, 30), chance.randint(2, 5)
    ways = f"if a > b:\n    print(a - b)\nelif a == b:\n    print(0)\nelse:\n    print(a * {times})"
    return f"a = {one}\nb = {other}\n{ways}"


def _while(chance: Random) -> str:
    name, limit = _name(chance), chance.randint(20, 90)
    loop = f"while {name} < {limit}:\n    {name} = {name} * 2 + 1\n    steps += 1"
    return f"{name} = {chance.randint(1, 5)}\nsteps = 0\n{loop}\nprint({name}, steps)"


def _list(chance: Random) -> str:
    numbers = [chance.randint(1, 40) for _ in range(chance.randint(4, 6))]
    asked = chance.choice(
        ("sum(numbers)", "max(numbers) - min(numbers)", "sorted(numbers)[1]", "numbers[-1] + len(numbers)")
    )
    return f"numbers = {numbers}\nprint({asked})"


def _count(chance: Random) -> str:
    numbers = [chance.randint(1, 30) for _ in range(chance.randint(5, 7))]
    loop = f"for number in {numbers}:\n    if number % {chance.randint(2, 4)} == 0:\n        found += 1"
    return f"found = 0\n{loop}\nprint(found)"


def _text(chance: Random) -> str:
    word = chance.choice(WORDS)
    asked = chance.choice(
        ("word[::-1]", f"word[:{chance.randint(2, 4)}] * 2", f"word + str(len(word) * {chance.randint(2, 9)})")
    )
    return f'word = "{word}"\nprint({asked})'


def _pair(chance: Random) -> str:
    loop = f"for i in range({chance.randint(3, 8)}):\n    c = a + b\n    a = b\n    b = c"
    return f"a = {chance.randint(0, 3)}\nb = {chance.randint(1, 4)}\n{loop}\nprint(b)"


_KINDS: tuple[tuple[str, Callable[[Random], str]], ...] = (
    ("a loop that adds up", _loop),
    ("a condition", _condition),
    ("a while loop", _while),
    ("a list of numbers", _list),
    ("a loop that counts", _count),
    ("a text that is cut and joined", _text),
    ("two numbers that grow", _pair),
)


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
