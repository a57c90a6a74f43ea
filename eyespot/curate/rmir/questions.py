"""Stages 1 and 2: a model asks up to three questions about each input picture; another look throws out unfit ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from eyespot.llms.fences import filled, one_line
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record, Records
from eyespot.pipelines.data_card.content import words
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, ask_model, prompt_of

KINDS = ("functional", "temporal", "causal")
CONSTRAINTS = ("dependence", "inference", "specificity", "wording")
MOST_WORDS, MOST_TARGET_WORDS = 24, 50  # of a question (under 25) and of a target's description

Opinion: TypeAlias = Literal["true", "false", "abstain"]


class Proposed(AnswerForm):
    """A question of one kind, or why there is none."""

    abstain: str
    reasoning: str
    question: str
    target: str


class Questions(AnswerForm):
    """What a model proposes for a picture. `unsuitable` says why for none of the kinds."""

    description: str
    unsuitable: str
    functional: Proposed
    temporal: Proposed
    causal: Proposed


class Held(AnswerForm):
    """Whether a rule holds, the reason first."""

    why: str
    holds: bool


class Checked(AnswerForm):
    """The picture described without regard to the question, then the four rules, then the verdict."""

    description: str
    dependence: Held
    inference: Held
    specificity: Held
    wording: Held
    fits: bool

    @property
    def failing(self) -> dict[str, str]:
        """The rules that do not hold, with the reasons."""
        rules = {name: getattr(self, name) for name in CONSTRAINTS}
        return {name: held.why for name, held in rules.items() if not held.holds}


class Vote(AnswerForm):
    """One judge on one candidate: what both pictures show, the reasoning, and only then the verdict."""

    target_description: str
    input_description: str
    reasoning: str
    verdict: Opinion


def shipped_prompt(name: str) -> str:
    """A prompt of the package."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


NOT_ASKED = "not drawn as an input"
DECLINED, UNSUITABLE, ABSTAINED = "the model declines", "the whole picture is unsuitable", "no fitting question: {kind}"
EMPTY, LONG, LONG_TARGET = "an empty question or target", "a question of 25 words or more", "a target of over 50 words"
AT_ODDS = "the check contradicts itself"
FAILS = "fails {constraint}"


@dataclass(frozen=True)
class Inputs:
    """`count` photos of the seed set are asked about; None: all of them.

    `want` is a number of queries of each kind by split, as `{ test = 100 }`: while there are fewer, more photos are
    asked about, until none is left. `count` is then how many are asked about at first.
    """

    count: int | None = None
    want: Mapping[Literal["test", "train"], int] = field(default_factory=dict)


def inputs(records: Records, context: Context, count: int | None) -> Iterator[Outcome]:
    """Which photos of the seed set are asked about: a draw that depends on the seed and the photo alone."""
    lots = {record["id"]: context.rng(record["id"]).random() for record in records}
    chosen = set(sorted(lots, key=lambda id: (lots[id], id))[:count])
    for record in records:
        yield Keep(record) if record["id"] in chosen else Drop(record, NOT_ASKED)


# -- stage 1 ----------------------------------------------------------------------------------------------------


def propose(photo: Record, context: Context, model: Mapping[str, Any], template: str) -> Iterator[Outcome]:
    """Up to three questions about a photo, an outcome for each kind; one for all where the photo is unsuitable."""
    more = {"_task": "question", "_about": photo}
    prompt = prompt_of(model, template, Questions, [PromptPicture(photo["id"], photo["path"])], **more)
    reply = ask_model(context, prompt, Questions)
    if reply.answer is None or reply.answer.unsuitable.strip():
        reason = (DECLINED, reply.declined) if reply.answer is None else (UNSUITABLE, reply.answer.unsuitable)
        yield Drop({**photo, "id": f"{photo['id']}/all", "image": photo["id"]}, *reason, of=photo["id"])
        return
    for kind in KINDS:
        proposed: Proposed = getattr(reply.answer, kind)
        about = {"image": photo["id"], "path": photo["path"], "labels": photo["labels"]}
        texts = {
            "question": one_line(proposed.question),
            "target": one_line(proposed.target),
            "reasoning": proposed.reasoning,
        }
        made = {"id": f"{photo['id']}/{kind}", "kind": kind, **about, "description": reply.answer.description, **texts}
        why = _unfit(kind, proposed)
        yield Keep(made, photo["id"]) if why is None else Drop(made, *why, of=photo["id"])


def _unfit(kind: str, proposed: Proposed) -> tuple[str, str] | None:
    if proposed.abstain.strip():
        return ABSTAINED.format(kind=kind), proposed.abstain
    if not proposed.question.strip() or not proposed.target.strip():
        return EMPTY, ""
    if (count := len(words(proposed.question))) > MOST_WORDS:
        return LONG, f"{count} words"
    if (count := len(words(proposed.target))) > MOST_TARGET_WORDS:
        return LONG_TARGET, f"{count} words"
    return None


# -- stage 2 ----------------------------------------------------------------------------------------------------


def check(query: Record, context: Context, model: Mapping[str, Any], template: str) -> Outcome:
    """Whether a question keeps the rules; the verdict and the single rules must say the same."""
    text = filled(template, {name: query[name] for name in ("question", "target")}, kind=query["kind"])
    shown = [PromptPicture(query["image"], query["path"])]
    reply = ask_model(context, prompt_of(model, text, Checked, shown, _task="check", _about=query), Checked)
    if reply.answer is None:
        return Drop(query, DECLINED, reply.declined)
    failing = reply.answer.failing
    record = {**query, "failing": failing}
    if reply.answer.fits == bool(failing):
        return Drop(record, AT_ODDS, f"fits: {reply.answer.fits}; failing: {', '.join(failing) or 'nothing'}")
    if failing:
        first, why = next(iter(failing.items()))
        return Drop(record, FAILS.format(constraint=first), why)
    return Keep(query)
