"""The step `caption`: five captions of each picture, by a model or, of drawn pictures, by whoever drew them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.build._asking import Form, Shown, answered, filled, prompt_of
from eyespot.build._steps import Context, Dropped, Kept, Outcome, Prompt, Record
from eyespot.build.recos.drawing.generator import USUAL
from eyespot.build.recos.drawn import generator_of
from eyespot.build.recos.sources import DRAWN, Sources
from eyespot.build.recos.subtasks import subtask

CAPTIONS = 5
UNSUITABLE, DECLINED, EMPTY, REPEATED = "unsuitable", "declined", "empty caption", "repeated caption"
DEMONSTRATION = "demonstration"
PROMPTS = Path(__file__).parent / "prompts"


class Captions(Form):
    """Captions of a picture, or why it cannot serve."""

    captions: list[str]
    unsuitable: str


class Writer(NamedTuple):
    """A model of the recipe, how it is asked, and where pictures lie."""

    model: Mapping[str, Any]
    template: str
    sources: Sources

    def asked(self, task: str, record: Record, form: type[Form], **words: Any) -> Prompt:
        """What is put to the model about a record's picture."""
        about = subtask(record["subtask"])
        told = {"subtask": about.name, "about": about.about, "attributes": ", ".join(about.attributes), **words}
        picture = Shown(record["image"], str(self.sources.place(record)))
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


def captioned(record: Record, context: Context, writer: Writer) -> Iterator[Outcome]:
    """A record for each caption, made of the picture's record."""
    if record["source"] == DRAWN:
        texts = generator_of(record["subtask"]).wording(record["facts"]).usual
        yield from _told({**record, "level": USUAL}, list(texts))
        return
    said = answered(context, writer.asked("caption", record, Captions, count=CAPTIONS), Captions)
    if said.answer is None:
        yield Dropped(record, DECLINED, said.declined)
    elif said.answer.unsuitable or not said.answer.captions:
        yield Dropped(record, UNSUITABLE, said.answer.unsuitable)
    else:
        yield from _told(record, said.answer.captions[:CAPTIONS])


def _told(record: Record, texts: list[str]) -> Iterator[Outcome]:
    seen: set[str] = set()
    for number, text in enumerate(texts, 1):
        made = {**record, "id": f"{record['id']}/{number}", "number": number, "text": " ".join(text.split())}
        reason = EMPTY if not text.strip() else REPEATED if text.casefold() in seen else ""
        seen.add(text.casefold())
        yield Dropped(made, reason, of=record["id"]) if reason else Kept(made, of=record["id"])
