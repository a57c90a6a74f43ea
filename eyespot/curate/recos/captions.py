"""The steps `caption` and `discriminate`: five captions of each picture, rewritten where dis(t) says so.

dis(t) (ReCoS, section 3.2) is the entropy of the softmax over the cosines of a caption with the k images nearest to it.
The paper's temperature is 1; docs/research/recos.md says why it is a setting here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eyespot.curate._world import Workers
from eyespot.curate.recos.pictures import DRAWN, Sources, generator_of
from eyespot.curate.recos.subtasks import DETAILED, USUAL, VAGUE
from eyespot.llms.fences import Fenced, filled, one_line
from eyespot.pipelines import Context, Drop, Keep, NoAnswer, Outcome, Prompt, Record
from eyespot.pipelines.data_card import CardTable
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, ask_model, prompt_of, shared_lines
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError, Vectors

OVER_DETAILED, FINE, UNDER_DETAILED = "over-detailed", "fine", "under-detailed"


@dataclass(frozen=True)
class Rewriting:
    """What dis(t) is taken over, and what is accepted: values within η/2 · log k of the middle, ½ log k.

    After at most `rounds` rewritings a caption is dropped, or kept and marked for the person who checks (`at_limit`).
    """

    k: int = 10
    temperature: float = 0.01
    eta: float = 0.9
    rounds: int = 3
    at_limit: Literal["drop", "keep"] = "drop"
    workers: int = 4

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError(f"k is {self.k}; dis(t) compares 2 images or more")
        if not (0 < self.temperature < math.inf and 0 < self.eta <= 1):
            raise UsageError("the temperature of dis(t) is above 0, and η above 0 and at most 1")

    @property
    def band(self) -> tuple[float, float]:
        """The least and the greatest dis(t) that is accepted, in nats."""
        return (1 - self.eta) / 2 * math.log(self.k), (1 + self.eta) / 2 * math.log(self.k)

    def verdict(self, value: float) -> str:
        """One of `OVER_DETAILED`, `FINE` and `UNDER_DETAILED`; the ends of the band are fine."""
        low, high = self.band
        return OVER_DETAILED if value < low else UNDER_DETAILED if value > high else FINE


def entropies(similarities: NDArray[np.floating[Any]], temperature: float) -> NDArray[np.float64]:
    """The entropy of the softmax of each row (captions, k) over the temperature, in nats, (captions,)."""
    scaled = np.asarray(similarities, np.float64) / temperature
    if not np.isfinite(scaled).all():
        raise UsageError("a cosine is not finite; embed these captions and images again")
    scaled -= scaled.max(axis=1, keepdims=True)
    weights = np.exp(scaled)
    total = weights.sum(axis=1)
    # of all forms of -Σ p log p this one has no logarithm of a weight that became 0
    return np.asarray(np.log(total) - (weights * scaled).sum(axis=1) / total)


TEMPERATURES = (1.0, 0.1, 0.05, 0.02, 0.01, 0.005)
ETAS = (0.2, 0.4, 0.6, 0.8, 0.9)
BINS = 20


def choices(nearest: Sequence[Sequence[float]], k: int) -> CardTable:
    """The share of captions that each temperature and η accepts; `nearest` are the k highest cosines of each."""
    cosines = np.array(nearest, np.float64).reshape(len(nearest), k)  # (captions, k)
    rows = []
    for temperature in TEMPERATURES if len(cosines) else ():
        values = entropies(cosines, temperature)  # (captions,)
        bands = [Rewriting(k, temperature, eta).band for eta in ETAS]
        shares = [f"{np.mean((values >= low) & (values <= high)):.0%}" for low, high in bands]
        rows.append([f"{temperature:g}", f"{np.median(values):.3f}", *shares])
    columns = ["temperature", "median dis(t)", *(f"η = {eta:g}" for eta in ETAS)]
    note = f"The share of captions, as first written, whose dis(t) lies in the band; log k = {math.log(k):.3f}."
    return CardTable("What would be accepted", columns, rows, note)


def histogram(first: Sequence[float], rewritten: Sequence[float], how: Rewriting) -> CardTable:
    """How dis(t) lies between 0 and log k, as first written and as accepted, in bins of equal width to choose η by."""
    edges = np.linspace(0, math.log(how.k), BINS + 1)
    counts = [np.histogram(np.clip(values, 0, edges[-1]), edges)[0].tolist() for values in (first, rewritten)]
    ends = [f"{edge:.2f}" for edge in edges]
    rows = [[f"{low} to {high}", *row] for low, high, *row in zip(ends[:-1], ends[1:], *counts, strict=True)]
    low, high = how.band
    note = (
        f"k {how.k}, temperature {how.temperature:g}, η {how.eta:g}: {low:.2f} to {high:.2f} is accepted. Less says "
        "too much, more says too little."
    )
    columns = ["dis(t)", "captions first written", "captions that passed"]
    band = (low / math.log(how.k), high / math.log(how.k))
    return CardTable("dis(t) of captions", columns, rows, note, drawn=1, band=band)


CAPTIONS = 5
UNSUITABLE, DECLINED, EMPTY, REPEATED = "unsuitable", "declined", "empty caption", "repeated caption"
DEMONSTRATION = "demonstration"
DOMAINS = Path(__file__).parent / "domains"
EVERYDAY = {step["step"]: step for step in toml_of(DOMAINS / "everyday.toml")["steps"]}  # what a recipe does not say


class Captions(AnswerForm):
    """Captions of a picture, or why it cannot serve."""

    captions: list[str]
    unsuitable: str


@dataclass(frozen=True)
class CaptionWriter:
    """A model of the recipe, the template of its prompts, and the pictures."""

    model: Mapping[str, Any]
    template: str
    sources: Sources

    def prompt(self, task: str, record: Record, form: type[AnswerForm], **fields: Any) -> Prompt:
        """The prompt about a record's picture; `fields` fill the template, captions as texts of others."""
        about = self.sources.subtask(record["subtask"])
        words = {"subtask": about.name, "about": about.about, "attributes": ", ".join(about.attributes), **fields}
        picture = PromptPicture(record["image"], str(self.sources.place(record)))
        known: dict[str, Any] = {}
        # Only rules that work from labels get them: to a model that sees the picture they would give the answer away
        if str(self.model.get("use")).partition(":")[0] == DEMONSTRATION:
            writing = record.get("writing", "") if about.of_writing else ""
            known["known"] = {"task": task, "facts": record["facts"], "attributes": about.attributes, **fields}
            known["known"]["writing"] = writing
        captions: dict[str, Fenced] = {name: words.pop(name) for name in ("caption", "captions") if name in words}
        known["_shared"] = shared_lines(self.template, "caption")
        return prompt_of(self.model, filled(self.template, captions, **words), form, [picture], **known)


@dataclass(frozen=True)
class Captioning(Workers):
    """How many pictures are captioned at once, and what is added to the prompt where further captions are written."""

    further: str = EVERYDAY["caption"]["further"]


def captioned(
    record: Record, context: Context, writer: CaptionWriter, how: Captioning, further: Mapping[str, Sequence[int]]
) -> Iterator[Outcome]:
    """A record for each caption, made from the picture's record; `further` has the numbers of others that replace some.

    What was written before is shown to the writer, so that others differ from it.
    """
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
        texts = reply.answer.captions[:CAPTIONS]
        rewriter = replace(writer, template=f"{writer.template}\n{how.further}")
        for count in further.get(record["image"], ()):
            prompt = rewriter.prompt("caption", record, Captions, count=count, captions=list(enumerate(texts, 1)))
            with suppress(NoAnswer):  # those before stay, and the next round asks once more
                again = ask_model(context, prompt, Captions).answer
                texts += again.captions[:count] if again else []
        yield from _caption_outcomes(record, texts)


def _caption_outcomes(record: Record, texts: list[str]) -> Iterator[Outcome]:
    seen: set[str] = set()
    for number, text in enumerate(texts, 1):
        made = {**record, "id": f"{record['id']}/{number}", "number": number, "text": one_line(text)}
        reason = EMPTY if not text.strip() else REPEATED if text.casefold() in seen else ""
        seen.add(text.casefold())
        yield Drop(made, reason, of=record["id"]) if reason else Keep(made, of=record["id"])


DIGITS = 6  # of a cosine that is written down


class Rewritten(AnswerForm):
    """A caption written again; the same or an empty one if there is no better."""

    caption: str


@dataclass(frozen=True)
class Turn:
    """A wording that was tried: its dis(t), the verdict on it, and the cosines of the k nearest pictures."""

    text: str
    dis: float
    verdict: str
    nearest: list[float]


@dataclass
class CaptionPool:
    """D: the pictures of v0, whose similarity to a caption shows how well it tells one picture from the others."""

    sources: Sources
    how: Rewriting
    _pool: tuple[Mapping[str, int], Vectors] | None = field(default=None, repr=False)  # the row of each picture
    _lock: Lock = field(default_factory=Lock, repr=False)

    def turn(self, text: str, record: Record, context: Context) -> Turn:
        """The dis(t) of a wording."""
        with self._lock:
            if self._pool is None:
                records = list(context.earlier["collect"])
                if len(records) <= self.how.k:
                    there = f"dis(t) compares {self.how.k} other pictures, and v0 has {len(records)}"
                    raise UsageError(f"{there}; make k smaller")
                rows: Mapping[str, int] = {one["image"]: row for row, one in enumerate(records)}
                self._pool = rows, self.sources.vectors(records)
            rows, vectors = self._pool
        cosines = vectors @ self.sources.text(text)  # (pictures,)
        others = np.delete(cosines, rows[record["image"]])
        nearest = np.sort(np.partition(others, -self.how.k)[-self.how.k :])[::-1]
        dis = float(entropies(nearest[None], self.how.temperature)[0])
        rounded = [round(float(cosine), DIGITS) for cosine in nearest]
        return Turn(text, round(dis, DIGITS), self.how.verdict(dis), rounded)


def discriminated(record: Record, context: Context, pool: CaptionPool, writer: CaptionWriter) -> Outcome:
    """The caption as it was, or as it was rewritten until it was accepted."""
    made, turns = dict(record), [pool.turn(record["text"], record, context)]
    while turns[-1].verdict != FINE and len(turns) <= pool.how.rounds:
        wording = _next_wording(made, context, turns, writer)
        if wording is None:
            break
        made |= wording
        turns.append(pool.turn(made["text"], made, context))
    last, first = turns[-1], turns[0]
    made |= {"dis": last.dis, "rounds": len(turns) - 1, "first_dis": first.dis, "nearest": first.nearest}
    if last.verdict == FINE:
        return Keep(made)
    detail = f"dis(t) is {last.dis:.3f} after {len(turns) - 1} rounds: {last.text}"
    if pool.how.at_limit == "drop":
        return Drop(made, last.verdict, detail)
    return Keep({**made, "doubts": [*made.get("doubts", []), f"{last.verdict}: {detail}"]})


def _next_wording(
    made: Mapping[str, Any], context: Context, turns: Sequence[Turn], writer: CaptionWriter
) -> dict[str, Any] | None:
    """Another wording, with less detail if there was too much; None if there is none, or it was tried before."""
    less = turns[-1].verdict == OVER_DETAILED
    # A person who checked the caption before saw another text
    fields: dict[str, Any] = {"review": None}
    if made["source"] == DRAWN:
        level = made["level"] + (-1 if less else 1)
        if not VAGUE <= level <= DETAILED:
            return None
        text = generator_of(made["subtask"]).wording(made["facts"])[level][made["number"] - 1]
        fields["level"] = level
    else:
        wish = "less" if less else "more"
        prompt = writer.prompt("rewrite", made, Rewritten, caption=made["text"], wish=wish)
        reply = ask_model(context, prompt, Rewritten)
        text = "" if reply.answer is None else reply.answer.caption
    text = one_line(text)
    tried = {turn.text.casefold() for turn in turns}
    return None if not text or text.casefold() in tried else {"text": text, **fields}
