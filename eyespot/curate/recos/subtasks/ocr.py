"""OCR: the text in the picture: in photos of galleries that were indexed with `--ocr`, or on drawn signs."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import draw_board, sample_board
from eyespot.curate.recos.subtasks import CaptionWordings, Facts, Subtask, described, fill_captions, nearly

if TYPE_CHECKING:
    from PIL.Image import Image

NUMBERED = ("exit", "entrance", "bus stop", "car park", "lift", "room", "platform", "gate", "table", "floor", "counter")
NUMBERS = tuple(range(2, 100))


class LetterBoards:
    """Boards with a short text and a number in printed letters."""

    def sample(self, rng: Random) -> dict[str, Any]:
        shown = f"{rng.choice(NUMBERED)} {rng.choice(NUMBERS)}"
        return {"shown": shown, "answer": shown, "painted": sample_board("text", rng)}

    def sibling(self, facts: Facts, rng: Random) -> Facts | None:
        changed = nearly(facts["shown"], rng, str)
        return {**facts, "shown": changed[0], "answer": changed[0]} if changed else None

    def draw(self, facts: Facts, rng: Random) -> Image:
        return draw_board(facts["shown"].upper(), facts["painted"], rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        words, _, number = facts["shown"].rpartition(" ")
        return fill_captions("ocr", {"words": words, "number": number, "board": facts["painted"]["board"]})


def load() -> Subtask:
    """The sub-task."""
    return described("ocr", LetterBoards())
