"""Numerical calculation: sums and areas of plane figures by hand; a caption tells what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import figures
from eyespot.curate.recos.drawing.arithmetic import evaluate, plain
from eyespot.curate.recos.drawing.generator import CaptionWordings, Facts
from eyespot.curate.recos.drawing.papers import PAPERS
from eyespot.curate.recos.subtasks import COGNITIVE, Subtask

if TYPE_CHECKING:
    from PIL.Image import Image

SHARE_OF_FIGURES = 0.3


class Sums:
    """The four operations with two or three numbers, and areas; every answer is a whole number."""

    def invent(self, chance: Random) -> dict[str, Any]:
        paper = chance.choice(list(PAPERS))
        if chance.random() < SHARE_OF_FIGURES:
            figure = chance.choice(list(figures.AREAS))
            sides = figures.sides(figure, chance)
            shown = figures.AREAS[figure].expression(*sides)
            return {"shown": shown, "answer": plain(evaluate(shown)), "figure": figure, "sides": sides, "paper": paper}
        kind = chance.choice(list(_KINDS))
        shown = _KINDS[kind](chance)
        return {"shown": shown, "answer": plain(evaluate(shown)), "kind": kind, "paper": paper}

    def answer(self, facts: Facts) -> str:
        if "figure" in facts:  # what stands on the paper are the figure and its sides, not the sum
            return plain(evaluate(figures.AREAS[facts["figure"]].expression(*facts["sides"])))
        return plain(evaluate(facts["shown"]))

    def paint(self, facts: Facts, chance: Random) -> Image:
        paper = PAPERS[facts["paper"]]
        if "figure" in facts:
            return figures.paint(facts["figure"], facts["sides"], paper, chance)
        return figures.written(f"{facts['shown']}=?", paper, chance)

    def wording(self, facts: Facts) -> CaptionWordings:
        if "figure" in facts:
            return _area(facts)
        kind, answer, paper, shown = facts["kind"], facts["answer"], facts["paper"], facts["shown"]
        vague = [
            f"{_a(kind).capitalize()} by hand.",
            f"Somebody has written {_a(kind)}.",
            f"Digits on {paper}.",
            f"A sum on {paper}.",
            f"A calculation: {_a(kind)}.",
        ]
        usual = [
            f"A calculation by hand whose result is {answer}.",
            f"{_a(kind).capitalize()} that comes to {answer}.",
            f"Somebody has to work out a sum, and {answer} is right.",
            f"What is asked for on {paper} is {answer}.",
            f"The answer to this {kind} is {answer}.",
        ]
        detailed = [f"{one.removesuffix('.')}: {shown}." for one in usual]
        return CaptionWordings(vague, usual, detailed)


def _area(facts: Facts) -> CaptionWordings:
    figure, answer, paper = facts["figure"], facts["answer"], facts["paper"]
    sides = " and ".join(f"{side} cm" for side in facts["sides"])
    vague = [
        f"{_a(figure).capitalize()} drawn by hand.",
        f"A figure on {paper}.",
        f"Somebody has drawn {_a(figure)}.",
        f"A figure with its lengths on {paper}.",
        f"A drawing of {_a(figure)}.",
    ]
    usual = [
        f"A figure by hand whose area is {answer} square cm.",
        f"{_a(figure).capitalize()} with an area of {answer} square cm.",
        f"Somebody has to work out an area, and {answer} is right.",
        f"The area of the figure on {paper} is {answer}.",
        f"The area of this {figure} is {answer}.",
    ]
    detailed = [f"{one.removesuffix('.')}, its lengths being {sides}." for one in usual]
    return CaptionWordings(vague, usual, detailed)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


# -- sums -------------------------------------------------------------------------------------------------------


def _addition(chance: Random) -> str:
    return f"{chance.randint(3, 99)}+{chance.randint(3, 99)}"


def _subtraction(chance: Random) -> str:
    less = chance.randint(2, 60)
    return f"{less + chance.randint(1, 60)}−{less}"


def _multiplication(chance: Random) -> str:
    return f"{chance.randint(2, 19)}×{chance.randint(2, 9)}"


def _division(chance: Random) -> str:
    divisor = chance.randint(2, 12)
    return f"{divisor * chance.randint(2, 15)}÷{divisor}"


def _longer(chance: Random) -> str:
    one, other, third = (chance.randint(2, 12) for _ in range(3))
    forms = (f"({one}+{other})×{third}", f"{one}×{other}+{third}", f"{one + other}−{other}+{third}")
    return chance.choice(forms)


_KINDS: Mapping[str, Callable[[Random], str]] = {
    "addition problem": _addition,
    "subtraction problem": _subtraction,
    "multiplication problem": _multiplication,
    "division problem": _division,
    "calculation with three numbers": _longer,
}


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "numerical",
        COGNITIVE,
        30,
        "Tells what the calculation or the area in the picture comes to, without repeating all of it.",
        ("result", "operation", "figure"),
        generator=Sums(),
    )
