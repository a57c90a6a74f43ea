"""Numerical calculation: sums and areas of plane figures by hand; a caption gives the result."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import PAPERS, handwriting
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

    def sample(self, rng: Random) -> dict[str, Any]:
        paper = rng.choice(list(PAPERS))
        if rng.random() < SHARE_OF_FIGURES:
            figure = rng.choice(list(handwriting.AREAS))
            sides = handwriting.sides(figure, rng)
            area = handwriting.AREAS[figure]
            shown, answer = area.expression(*sides), str(area.value(*sides))
            return {"shown": shown, "answer": answer, "figure": figure, "sides": sides, "paper": paper}
        kind = rng.choice(KINDS)
        shown, result = write_sum(kind, rng)
        return {"shown": shown, "answer": str(result), "kind": kind, "paper": paper}

    def draw(self, facts: Facts, rng: Random) -> Image:
        paper = PAPERS[facts["paper"]]
        if "figure" in facts:
            return handwriting.draw(facts["figure"], facts["sides"], paper, rng)
        return handwriting.written(f"{facts['shown']}=?", paper, rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"answer": facts["answer"], "paper": facts["paper"]}
        if "figure" in facts:
            sides = " and ".join(f"{side} cm" for side in facts["sides"])
            return fill_captions("area", fields | kind_fields(facts["figure"]) | {"shown": sides})
        return fill_captions("sum", fields | kind_fields(facts["kind"]) | {"shown": facts["shown"]})


def write_sum(kind: str, rng: Random) -> tuple[str, int]:
    """A sum of this kind with random numbers, and what it comes to."""
    number = rng.randint
    match kind:
        case "addition problem":
            a, b = number(3, 99), number(3, 99)
            return f"{a}+{b}", a + b
        case "subtraction problem":
            less, rest = number(2, 60), number(1, 60)
            return f"{less + rest}−{less}", rest
        case "multiplication problem":
            a, b = number(2, 19), number(2, 9)
            return f"{a}×{b}", a * b
        case "division problem":
            divisor, result = number(2, 12), number(2, 15)
            return f"{divisor * result}÷{divisor}", result
        case _:
            a, b, c = number(2, 12), number(2, 12), number(2, 12)
            sums = ((f"({a}+{b})×{c}", (a + b) * c), (f"{a}×{b}+{c}", a * b + c), (f"{a + b}−{b}+{c}", a + c))
            return rng.choice(sums)


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
