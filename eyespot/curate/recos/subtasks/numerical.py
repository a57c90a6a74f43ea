"""Numerical calculation: sums and areas of plane figures by hand; a caption gives the result."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import PAPERS, handwriting
from eyespot.curate.recos.subtasks import (
    CaptionWordings,
    Facts,
    Subtask,
    described,
    fill_captions,
    form_of,
    kind_fields,
    nearly,
    written,
)

if TYPE_CHECKING:
    from PIL.Image import Image

SHARE_OF_FIGURES = 0.3
SIGNS = str.maketrans("−×÷", "-*/")


class Sums:
    """The four operations with two or three numbers, and areas; every answer is a whole number."""

    def sample(self, rng: Random) -> dict[str, Any]:
        paper = rng.choice(list(PAPERS))
        if rng.random() < SHARE_OF_FIGURES:
            figure = rng.choice(list(handwriting.FIGURES))
            while True:
                sides = [rng.randint(*ends) for ends in handwriting.FIGURES[figure]["sides"]]
                shown = handwriting.FIGURES[figure]["shown"].format(*sides)
                if answer := result_of(shown):
                    return {"shown": shown, "answer": answer, "figure": figure, "sides": sides, "paper": paper}
        kind, shown, answer = written("sums", rng, result_of)
        return {"shown": shown, "answer": answer, "kind": kind, "paper": paper}

    def sibling(self, facts: Facts, rng: Random) -> Facts | None:
        if "figure" not in facts:
            changed = nearly(facts["shown"], rng, result_of, form_of("sums", facts["kind"]))
            return {**facts, "shown": changed[0], "answer": changed[1]} if changed else None
        area, ranges = (handwriting.FIGURES[facts["figure"]][name] for name in ("shown", "sides"))

        def result(sides: str) -> str:
            lengths = [int(side) for side in sides.split()]
            fits = all(low <= side <= high for side, (low, high) in zip(lengths, ranges, strict=True))
            return result_of(area.format(*lengths)) if fits else ""

        sides = nearly(" ".join(map(str, facts["sides"])), rng, result)
        if sides is None:
            return None
        lengths = [int(side) for side in sides[0].split()]
        return {**facts, "shown": area.format(*lengths), "answer": sides[1], "sides": lengths}

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


def result_of(calculation: str) -> str:
    """What a calculation comes to; "" unless that is a whole number above 0."""
    value = eval(re.sub(r"\d+", r"Fraction(\g<0>)", calculation.translate(SIGNS)), {"Fraction": Fraction})
    return str(value) if value > 0 and value.denominator == 1 else ""


def load() -> Subtask:
    """The sub-task."""
    return described("numerical", Sums())
