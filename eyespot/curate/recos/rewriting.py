"""The step `discriminate`: a caption that says too much or too little by dis(t) is written again, some rounds long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np

from eyespot.curate._discriminability import FINE, OVER_DETAILED, Discriminability, entropies
from eyespot.curate.recos.captioning import CaptionWriter
from eyespot.curate.recos.drawing.generator import DETAILED, VAGUE
from eyespot.curate.recos.drawn import AMBIGUOUS, generator_of, same_words, wordings
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record
from eyespot.pipelines.prompts import AnswerForm, answered
from eyespot.types import UsageError, Vectors

DIGITS = 6  # of a cosine that is written down


@dataclass(frozen=True)
class Rewriting:
    """dis(t) over the `k` nearest pictures at a temperature, accepted within η; `rounds` of writing again at most.

    What is not accepted then is dropped, or kept and marked for the person who checks (`at_limit`).
    """

    k: int = 10
    temperature: float = 0.01
    eta: float = 0.5
    rounds: int = 3
    at_limit: Literal["drop", "keep"] = "drop"
    workers: int = 4

    @property
    def measure(self) -> Discriminability:
        """What is accepted."""
        return Discriminability(self.k, self.temperature, self.eta)


class Rewritten(AnswerForm):
    """A caption written again; the same or an empty one if there is no better."""

    caption: str


class Turn(NamedTuple):
    """A wording that was tried: its dis(t), the verdict on it, and the cosines of the k nearest pictures."""

    text: str
    dis: float
    verdict: str
    nearest: list[float]


@dataclass
class CaptionPool:
    """D: the pictures of v0, whose likeness to a caption tells how well it tells one from another."""

    sources: Sources
    how: Rewriting
    _records: Sequence[Record] = ()
    _wordings: Mapping[str, set[str]] | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def turn(self, text: str, record: Record, context: Context) -> Turn:
        """What a wording is worth."""
        with self._lock:
            self._records = self._records or list(context.earlier["collect"])
            own = self._at[record["image"]]
            vectors = self._vectors
        cosines = vectors @ self.sources.texts([text])[0]  # (pictures,)
        others = np.delete(cosines, own)
        nearest = np.sort(np.partition(others, -self.how.k)[-self.how.k :])[::-1]
        dis = float(entropies(nearest[None], self.how.temperature)[0])
        told = [round(float(one), DIGITS) for one in nearest]
        return Turn(text, round(dis, DIGITS), self.how.measure.verdict(dis), told)

    def is_ambiguous(self, text: str, record: Record, context: Context) -> bool:
        """Whether whoever drew the pictures knows the text to be true of another one than the record's."""
        with self._lock:
            if self._wordings is None:
                self._wordings = wordings(context.earlier["render"])
        return not self._wordings.get(same_words(text), set()) <= {record["image"]}

    @cached_property
    def _vectors(self) -> Vectors:
        if len(self._records) <= self.how.k:
            raise UsageError(
                f"dis(t) compares {self.how.k} other pictures, and v0 has {len(self._records)}; make k smaller"
            )
        return self.sources.vectors(self._records)

    @cached_property
    def _at(self) -> Mapping[str, int]:
        return {record["image"]: at for at, record in enumerate(self._records)}


def discriminated(record: Record, context: Context, pool: CaptionPool, writer: CaptionWriter) -> Outcome:
    """The caption as it was, or as it was written again until it was accepted."""
    if pool.is_ambiguous(record["text"], record, context):
        return Drop(record, AMBIGUOUS, record["text"])
    made, turns = dict(record), [pool.turn(record["text"], record, context)]
    while turns[-1].verdict != FINE and len(turns) <= pool.how.rounds:
        again = _again(made, context, turns, writer)
        if again is None:
            break
        if pool.is_ambiguous(again["text"], made, context):
            return _become(made, turns, pool.how, again["text"])
        made |= again
        turns.append(pool.turn(made["text"], made, context))
    return _become(made, turns, pool.how)


def _become(made: dict[str, Any], turns: Sequence[Turn], how: Rewriting, ambiguous: str = "") -> Outcome:
    """What becomes of the last wording; `ambiguous` is the next one, which is true of another picture too."""
    last, first = turns[-1], turns[0]
    told = {"dis": last.dis, "rounds": len(turns) - 1, "first_dis": first.dis, "nearest": first.nearest}
    if last.verdict == FINE:
        return Keep({**made, **told})
    detail = f"dis(t) is {last.dis:.3f} after {len(turns) - 1} rounds: {last.text}"
    if how.at_limit == "drop" and ambiguous:
        return Drop({**made, **told}, AMBIGUOUS, ambiguous)
    if how.at_limit == "drop":
        return Drop({**made, **told}, last.verdict, detail)
    return Keep({**made, **told, "doubts": [*made.get("doubts", []), f"{last.verdict}: {detail}"]})


def _again(
    made: Mapping[str, Any], context: Context, turns: Sequence[Turn], writer: CaptionWriter
) -> dict[str, Any] | None:
    """Another wording, with less in it if there was too much; None if nobody has one."""
    less = turns[-1].verdict == OVER_DETAILED
    if made["source"] == DRAWN:
        level = made["level"] + (-1 if less else 1)
        if not VAGUE <= level <= DETAILED:
            return None
        text = generator_of(made["subtask"]).wording(made["facts"])[level][made["number"] - 1]
        return _new(text, turns, level=level)
    wish = "less" if less else "more"
    said = answered(context, writer.asked("rewrite", made, Rewritten, caption=made["text"], wish=wish), Rewritten)
    return None if said.answer is None else _new(said.answer.caption, turns)


def _new(text: str, turns: Sequence[Turn], **more: Any) -> dict[str, Any] | None:
    """The wording, unless it is empty or was tried before, or two kinds of fault would alternate for ever."""
    plain = " ".join(text.split())
    known = {turn.text.casefold() for turn in turns}
    unseen = {"review": None, "mended": None}  # a person who looked before saw other words
    return None if not plain or plain.casefold() in known else {"text": plain, **unseen, **more}
