"""The step `caption`: five captions of each picture, by a model or, for drawn pictures, by their generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.recos.drawing.generator import USUAL
from eyespot.curate.recos.drawn import generator_of
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import subtask
from eyespot.pipelines import Context, Drop, Keep, Outcome, Prompt, Record
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, ask_model, filled, prompt_of

CAPTIONS = 5
UNSUITABLE, DECLINED, EMPTY, REPEATED = "unsuitable", "declined", "empty caption", "repeated caption"
DEMONSTRATION = "demonstration"
PROMPTS = Path(__file__).parent / "prompts"


class Captions(AnswerForm):
    """Captions of a picture, or why it cannot serve."""

    captions: list[str]
    unsuitable: str


class CaptionWriter(NamedTuple):
    """A model of the recipe, the template of its prompts, and the pictures."""

    model: Mapping[str, Any]
    template: str
    sources: Sources

    def prompt(self, task: str, record: Record, form: type[AnswerForm], **fields: Any) -> Prompt:
        """The prompt about a record's picture; `fields` fill the template."""
        about = subtask(record["subtask"])
        words = {"subtask": about.name, "about": about.about, "attributes": ", ".join(about.attributes), **fields}
        picture = PromptPicture(record["image"], str(self.sources.place(record)))
        known = {}
        # Only rules that work from labels get them: to a model that sees the picture they would give the answer away
        if str(self.model.get("use")).partition(":")[0] == DEMONSTRATION:
            writing = record.get("writing", "") if about.of_writing else ""
            known["known"] = {"task": task, "facts": record["facts"], "attributes": about.attributes, **fields}
            known["known"]["writing"] = writing
        return prompt_of(self.model, filled(self.template, **words), form, [picture], **known)


def template(name: str) -> str:
    """A prompt of the package."""
    return (PROMPTS / f"{name}.md").read_text(encoding="utf-8")


def captioned(record: Record, context: Context, writer: CaptionWriter) -> Iterator[Outcome]:
    """A record for each caption, made from the picture's record."""
    if record["source"] == DRAWN:
        texts = generator_of(record["subtask"]).wording(record["facts"]).usual
        yield from _caption_outcomes({**record, "level": USUAL}, list(texts))
        return
    reply = ask_model(context, writer.prompt("caption", record, Captions, count=CAPTIONS), Captions)
    if reply.answer is None:
        yield Drop(record, DECLINED, reply.declined)
    elif reply.answer.unsuitable or not reply.answer.captions:
        yield Drop(record, UNSUITABLE, reply.answer.unsuitable)
    else:
        yield from _caption_outcomes(record, reply.answer.captions[:CAPTIONS])


def _caption_outcomes(record: Record, texts: list[str]) -> Iterator[Outcome]:
    seen: set[str] = set()
    for number, text in enumerate(texts, 1):
        made = {**record, "id": f"{record['id']}/{number}", "number": number, "text": " ".join(text.split())}
        reason = EMPTY if not text.strip() else REPEATED if text.casefold() in seen else ""
        seen.add(text.casefold())
        yield Drop(made, reason, of=record["id"]) if reason else Keep(made, of=record["id"])
