"""Text translation: a sign in Chinese and a caption in English, or the other way round."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import boards
from eyespot.curate.recos.drawing.generator import CaptionWordings, Facts
from eyespot.curate.recos.drawing.signs import invent, translated
from eyespot.curate.recos.subtasks import COGNITIVE, Subtask

if TYPE_CHECKING:
    from PIL.Image import Image

SHARE_OF_ENGLISH = 0.3  # signs in English, whose captions tell the Chinese


class BilingualSigns:
    """Signs out of a list of short texts that say the same in both languages."""

    def invent(self, chance: Random) -> dict[str, Any]:
        phrase, english = invent(chance), chance.random() < SHARE_OF_ENGLISH
        shown, answer = (phrase.english, phrase.chinese) if english else (phrase.chinese, phrase.english)
        painted = boards.invent("text" if english else "chinese", chance)
        return {"shown": shown, "answer": answer, "kind": phrase.kind, "painted": painted}

    def answer(self, facts: Facts) -> str:
        return translated(facts["shown"])

    def paint(self, facts: Facts, chance: Random) -> Image:
        return boards.paint(facts["shown"], facts["painted"], chance)

    def wording(self, facts: Facts) -> CaptionWordings:
        answer, kind, board = facts["answer"], facts["kind"], f"a {facts['painted']['board']} board"
        shown, told = ("Chinese", "English") if facts["shown"] > "\u2e80" else ("English", "Chinese")
        vague = [
            f"A sign in {shown}.",
            f"A {kind} in {shown} on a sign.",
            f"{board.capitalize()} with {shown} letters.",
            f"Words in {shown} on {board}.",
            f"A short text in {shown}.",
        ]
        usual = [
            f'A sign in {shown} that means "{answer}" in {told}.',
            f'The {shown} words on the sign say "{answer}".',
            f'Translated into {told}, the sign says "{answer}".',
            f'{"An" if shown == "English" else "A"} {shown} sign for "{answer}".',
            f'What is written here in {shown} is "{answer}" in {told}.',
        ]
        detailed = [f"{one.removesuffix('.')}, on {board}." for one in usual]
        return CaptionWordings(vague, usual, detailed)


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
