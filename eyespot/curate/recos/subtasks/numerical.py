"""Numerical calculation: sums and areas of plane figures by hand; a caption gives the result."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import PAPERS, handwriting
from eyespot.curate.recos.drawing.handwriting import evaluate, plain
from eyespot.curate.recos.subtasks import COGNITIVE, CaptionWordings, Facts, Subtask, fill_captions, kind_fields

if TYPE_CHECKING:
    from PIL.Image import Image

SHARE_OF_FIGURES = 0.3
KINDS = (
    *("addition problem", "subtraction problem", "multiplication problem", "division problem"),
    "calculation with three numbers",
)


class Sums:
    """The four operations with two or three numbers, and areas; every answer is a whole number."""

    def invent(self, chance: Random) -> dict[str, Any]:
        paper = chance.choice(list(PAPERS))
        if chance.random() < SHARE_OF_FIGURES:
            figure = chance.choice(list(handwriting.AREAS))
            sides = handwriting.sides(figure, chance)
            shown = handwriting.AREAS[figure].expression(*sides)
            return {"shown": shown, "answer": plain(evaluate(shown)), "figure": figure, "sides": sides, "paper": paper}
        kind = chance.choice(KINDS)
        shown = write_sum(kind, chance)
        return {"shown": shown, "answer": plain(evaluate(shown)), "kind": kind, "paper": paper}

    def answer(self, facts: Facts) -> str:
        if "figure" in facts:  # the paper shows the figure and its sides, not the sum
            return plain(evaluate(handwriting.AREAS[facts["figure"]].expression(*facts["sides"])))
        return plain(evaluate(facts["shown"]))

    def paint(self, facts: Facts, chance: Random) -> Image:
        paper = PAPERS[facts["paper"]]
        if "figure" in facts:
            return handwriting.paint(facts["figure"], facts["sides"], paper, chance)
        return handwriting.written(f"{facts['shown']}=?", paper, chance)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"answer": facts["answer"], "paper": facts["paper"]}
        if "figure" in facts:
            sides = " and ".join(f"{side} cm" for side in facts["sides"])
            return fill_captions("area", fields | kind_fields(facts["figure"]) | {"shown": sides})
        return fill_captions("sum", fields | kind_fields(facts["kind"]) | {"shown": facts["shown"]})


def write_sum(kind: str, chance: Random) -> str:
    """A sum of this kind, whose numbers are drawn by chance."""
    number = chance.randint
    match kind:
        case "addition problem":
            return f"{number(3, 99)}+{number(3, 99)}"
        case "subtraction problem":
            less = number(2, 60)
            return f"{less + number(1, 60)}−{less}"
        case "multiplication problem":
            return f"{number(2, 19)}×{number(2, 9)}"
        case "division problem":
            divisor = number(2, 12)
            return f"{divisor * number(2, 15)}÷{divisor}"
        case _:
            a, b, c = number(2, 12), number(2, 12), number(2, 12)
            return chance.choice((f"({a}+{b})×{c}", f"{a}×{b}+{c}", f"{a + b}−{b}+{c}"))


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
