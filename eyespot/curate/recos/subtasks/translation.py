"""Text translation: a sign in Chinese and a caption in English, or the other way round."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import draw_board, sample_board, sample_phrase
from eyespot.curate.recos.subtasks import COGNITIVE, CaptionWordings, Facts, Subtask, fill_captions

if TYPE_CHECKING:
    from PIL.Image import Image

SHARE_OF_ENGLISH = 0.3  # signs in English, whose captions give the Chinese


class BilingualSigns:
    """Signs from a list of short texts that mean the same in both languages."""

    def sample(self, rng: Random) -> dict[str, Any]:
        phrase, english = sample_phrase(rng), rng.random() < SHARE_OF_ENGLISH
        shown, answer = (phrase[name] for name in (("english", "chinese") if english else ("chinese", "english")))
        style = sample_board("text" if english else "chinese", rng)
        return {"shown": shown, "answer": answer, "kind": phrase["kind"], "painted": style}

    def draw(self, facts: Facts, rng: Random) -> Image:
        return draw_board(facts["shown"], facts["painted"], rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"answer": facts["answer"], "kind": facts["kind"], "board": facts["painted"]["board"]}
        if facts["shown"] > "\u2e80":  # where the signs of Chinese begin
            fields |= {"article": "A", "language": "Chinese", "other": "English"}
        else:
            fields |= {"article": "An", "language": "English", "other": "Chinese"}
        return fill_captions("translation", fields)


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "translation",
        COGNITIVE,
        30,
        "Tells in the other language what the Chinese or English text in the picture says.",
        ("meaning", "language"),
        generator=BilingualSigns(),
    )
