"""The step `caption`: five captions of each picture, by a model or, of drawn pictures, by whoever drew them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.recos.drawing.generator import USUAL
from eyespot.curate.recos.drawn import generator_of
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import subtask
from eyespot.pipelines import Context, Drop, Keep, Outcome, Prompt, Record
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, answered, filled, prompt_of

CAPTIONS = 5
UNSUITABLE, DECLINED, EMPTY, REPEATED = "unsuitable", "declined", "empty caption", "repeated caption"
DEMONSTRATION = "demonstration"
PROMPTS = Path(__file__).parent / "prompts"


class Captions(AnswerForm):
    """Captions of a picture, or why it cannot serve."""

    captions: list[str]
    unsuitable: str


class CaptionWriter(NamedTuple):
    """A model of the recipe, how it is asked, and where pictures lie."""

    model: Mapping[str, Any]
    template: str
    sources: Sources

    def asked(self, task: str, record: Record, form: type[AnswerForm], **words: Any) -> Prompt:
        """What is put to the model about a record's picture."""
        about = subtask(record["subtask"])
        told = {"subtask": about.name, "about": about.about, "attributes": ", ".join(about.attributes), **words}
        picture = PromptPicture(record["image"], str(self.sources.place(record)))
        more = (
            {"known": {"task": task, "facts": record["facts"], "attributes": about.attributes, **words}}
            if self._knows
            else {}
        )
        return prompt_of(self.model, filled(self.template, **told), form, [picture], **more)

    @property
    def _knows(self) -> bool:
        """Whether it works from labels: to a model that sees the picture they would give the answer away."""
        return str(self.model.get("use")).partition(":")[0] == DEMONSTRATION


def template(name: str) -> str:
    """A prompt of the package."""
    return (PROMPTS / f"{name}.md").read_text(encoding="utf-8")


def captioned(record: Record, context: Context, writer: CaptionWriter) -> Iterator[Outcome]:
    """A record for each caption, made of the picture's record."""
    if record["source"] == DRAWN:
        texts = generator_of(record["subtask"]).wording(record["facts"]).usual
        yield from _caption_outcomes({**record, "level": USUAL}, list(texts))
        return
    said = answered(context, writer.asked("caption", record, Captions, count=CAPTIONS), Captions)
    if said.answer is None:
        yield Drop(record, DECLINED, said.declined)
    elif said.answer.unsuitable or not said.answer.captions:
        yield Drop(record, UNSUITABLE, said.answer.unsuitable)
    else:
        yield from _caption_outcomes(record, said.answer.captions[:CAPTIONS])


def _caption_outcomes(record: Record, texts: list[str]) -> Iterator[Outcome]:
    seen: set[str] = set()
    for number, text in enumerate(texts, 1):
        made = {**record, "id": f"{record['id']}/{number}", "number": number, "text": " ".join(text.split())}
        reason = EMPTY if not text.strip() else REPEATED if text.casefold() in seen else ""
        seen.add(text.casefold())
        yield Drop(made, reason, of=record["id"]) if reason else Keep(made, of=record["id"])
