"""Text translation: a sign in Chinese and a caption in English, or the other way round."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any

from eyespot.curate.recos.drawing import PHRASES, draw_board, sample_board, sample_phrase
from eyespot.curate.recos.subtasks import CaptionWordings, Facts, Subtask, described, fill_captions, nearly, token_edits

if TYPE_CHECKING:
    from PIL.Image import Image

LAST_LATIN = "\u2e80"  # where the signs of Chinese begin
SHARE_OF_ENGLISH = 0.3  # signs in English, whose captions give the Chinese


class BilingualSigns:
    """Signs from a list of short texts that mean the same in both languages."""

    def sample(self, rng: Random) -> dict[str, Any]:
        phrase, english = sample_phrase(rng), rng.random() < SHARE_OF_ENGLISH
        shown, answer = (phrase[name] for name in (("english", "chinese") if english else ("chinese", "english")))
        style = sample_board("text" if english else "chinese", rng)
        return {"shown": shown, "answer": answer, "kind": phrase["kind"], "painted": style}

    def sibling(self, facts: Facts, rng: Random) -> Facts | None:
        names = ("english", "chinese") if facts["shown"] <= LAST_LATIN else ("chinese", "english")
        if changed := nearly(facts["shown"], rng, str):  # the number, which both texts have
            number, other = (re.search(r"\d+", text)[0] for text in (facts["shown"], changed[0]))  # type: ignore[index]
            return {**facts, "shown": changed[0], "answer": facts["answer"].replace(number, other)}
        words = facts["answer" if names[1] == "english" else "shown"].split()
        same = [one for one in PHRASES if one["kind"] == facts["kind"] and one[names[0]] != facts["shown"]]
        rng.shuffle(same)
        chosen = rng.choice(sorted(same, key=lambda one: token_edits(words, one["english"].split()))[:4])
        return {**facts, "shown": chosen[names[0]], "answer": chosen[names[1]]}

    def draw(self, facts: Facts, rng: Random) -> Image:
        return draw_board(facts["shown"], facts["painted"], rng)

    def wording(self, facts: Facts) -> CaptionWordings:
        fields = {"answer": facts["answer"], "kind": facts["kind"], "board": facts["painted"]["board"]}
        if facts["shown"] > LAST_LATIN:
            fields |= {"article": "A", "language": "Chinese", "other": "English"}
        else:
            fields |= {"article": "An", "language": "English", "other": "Chinese"}
        return fill_captions("translation", fields)


def load() -> Subtask:
    """The sub-task."""
    return described("translation", BilingualSigns())
