"""Stages 1 and 2: a model asks up to three questions about each input picture; another look throws out unfit ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import create_model

from eyespot.curate._world import Workers
from eyespot.llms.fences import filled, one_line
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record, Records
from eyespot.pipelines.data_card.content import words
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, ask_model, prompt_of, shared_lines
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

DOMAINS = Path(__file__).parent / "domains"
EVERYDAY = {step["step"]: step for step in toml_of(DOMAINS / "everyday.toml")["steps"]}  # what a recipe does not say
NAME = re.compile(r"(?!all$|description$|unsuitable$|fits$)[a-z][a-z_]*")  # of a kind or rule, a field of answers
MOST_WORDS, MOST_TARGET_WORDS = 24, 50  # of a question (under 25) and of a target's description

Opinion: TypeAlias = Literal["true", "false", "abstain"]


class Proposed(AnswerForm):
    """A question of one kind, or why there is none."""

    abstain: str
    reasoning: str
    question: str
    target: str


class Questions(AnswerForm):
    """What a model proposes for a picture, with a field for each kind. `unsuitable` says why for none of the kinds."""

    description: str
    unsuitable: str


class Held(AnswerForm):
    """Whether a rule holds, the reason first."""

    why: str
    holds: bool


@dataclass(frozen=True)
class Asking(Workers):
    """The kinds of questions, each with what it asks for, and how many requests about photos run at once."""

    kinds: Mapping[str, str] = field(default_factory=lambda: dict(EVERYDAY["questions"]["kinds"]))

    def __post_init__(self) -> None:
        _refuse_names(self.kinds)

    @property
    def form(self) -> type[Questions]:
        """What an answer must look like."""
        fields: dict[str, Any] = {kind: (Proposed, ...) for kind in self.kinds}
        return create_model("Questions", __base__=Questions, **fields)


@dataclass(frozen=True)
class Checking(Workers):
    """The rules that questions keep, each with when it fails, and how many questions are checked at once."""

    rules: Mapping[str, str] = field(default_factory=lambda: dict(EVERYDAY["checked"]["rules"]))

    def __post_init__(self) -> None:
        _refuse_names(self.rules)

    @property
    def form(self) -> type[AnswerForm]:
        """The picture described without regard to the question, then the rules, then the verdict."""
        fields: dict[str, Any] = {"description": (str, ...), **{rule: (Held, ...) for rule in self.rules}}
        return create_model("Checked", __base__=AnswerForm, **fields, fits=(bool, ...))


def _refuse_names(names: Mapping[str, str]) -> None:
    if wrong := next((name for name in names if not NAME.fullmatch(name)), None):
        raise UsageError(f"{wrong!r} cannot be a name here; use small letters and _, as in diagnostic")
    if not names:
        raise UsageError("a recipe needs one kind and one rule or more; leave the table out for the usual ones")


class Vote(AnswerForm):
    """One judge on one candidate: what both pictures show, the reasoning, and only then the verdict."""

    target_description: str
    input_description: str
    reasoning: str
    verdict: Opinion


def shipped_prompt(step: str) -> str:
    """The prompt of a step in the package's domain of everyday photographs."""
    return str(EVERYDAY[step]["prompt"])


def listed(names: Mapping[str, str]) -> str:
    """Kinds or rules as a prompt has them."""
    return "\n".join(f"- {name}: {text}" for name, text in names.items())


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


def propose(
    photo: Record, context: Context, model: Mapping[str, Any], template: str, *, how: Asking
) -> Iterator[Outcome]:
    """A question of each kind about a photo, an outcome for each; one for all where the photo is unsuitable."""
    more = {"_task": "question", "_about": photo, "_names": tuple(how.kinds)}
    prompt = prompt_of(model, template, how.form, [PromptPicture(photo["id"], photo["path"])], **more)
    reply = ask_model(context, prompt, how.form)
    if reply.answer is None or reply.answer.unsuitable.strip():
        reason = (DECLINED, reply.declined) if reply.answer is None else (UNSUITABLE, reply.answer.unsuitable)
        yield Drop({**photo, "id": f"{photo['id']}/all", "image": photo["id"]}, *reason, of=photo["id"])
        return
    for kind in how.kinds:
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


def check(query: Record, context: Context, model: Mapping[str, Any], template: str, *, how: Checking) -> Outcome:
    """Whether a question keeps the rules; the verdict and the single rules must say the same."""
    text = filled(template, {name: query[name] for name in ("question", "target")}, kind=query["kind"])
    shown = [PromptPicture(query["image"], query["path"])]
    more = {"_task": "check", "_about": query, "_names": tuple(how.rules), "_shared": shared_lines(template, "kind")}
    reply = ask_model(context, prompt_of(model, text, how.form, shown, **more), how.form)
    if reply.answer is None:
        return Drop(query, DECLINED, reply.declined)
    fields: dict[str, Any] = dict(reply.answer)
    failing, fits = {name: fields[name].why for name in how.rules if not fields[name].holds}, fields["fits"]
    record = {**query, "failing": failing}
    if fits == bool(failing):
        return Drop(record, AT_ODDS, f"fits: {fits}; failing: {', '.join(failing) or 'nothing'}")
    if failing:
        first, why = next(iter(failing.items()))
        return Drop(record, FAILS.format(constraint=first), why)
    return Keep(query)
