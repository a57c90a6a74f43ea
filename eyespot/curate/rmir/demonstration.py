"""A teacher for demonstrations: it asks, checks and judges by rules over labels that are known, and sees no picture.

It stands where a vision–language model would, so that the whole pipeline runs on real photos without one, and makes the
mistakes it is told to make, so that every kind of loss is seen. Its sets test nothing.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from eyespot.curate.rmir.questions import CONSTRAINTS, KINDS
from eyespot.pipelines import CallMeter, NoAnswer, Prompt, Record
from eyespot.types import UsageError

NAME = "demonstration"
FAULTS = ("abstains", "contradicts", "slips", "silent")
"""Shares of its answers, from 0 to 1: kinds it has no question for, checks whose verdict is not that of their rules,
votes turned round, and questions it gives no answer to."""
NONE = {"abstain": "no rule of the demonstration fits the labels", "question": "", "target": "", "reasoning": ""}


@dataclass(frozen=True)
class Rule:
    """Labels that call for a question, and labels that answer it; `fails` names what is wrong with a bad one."""

    kind: str
    given: tuple[str, ...]
    question: str
    target: str
    answers: tuple[str, ...]
    reasoning: str
    fails: str = ""


def teacher(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """A client for models whose `use` begins with `demonstration`; it spends nothing."""
    known = {"use", "words", "form", "pictures", "judge", "draw", *FAULTS}
    strange = next((name for name in prompt if name not in known and not name.startswith("_")), None)
    if strange is not None:
        raise UsageError(f"the demonstration knows no {strange!r}; it can be told: {', '.join(FAULTS)}")
    task, about = str(prompt["_task"]), prompt["_about"]
    if _chance(prompt, "silent") < _share(prompt, "silent"):
        raise NoAnswer("the demonstration was told to be silent at times")
    return {"question": _questions, "check": _check, "judge": _vote}[task](prompt, about)


# -- its three answers --------------------------------------------------------------------------------------------


def _questions(prompt: Prompt, photo: Record) -> Mapping[str, Any]:
    labels, (unsuitable, rules) = _labels(photo), _rules()
    if _has_label(labels, unsuitable):
        empty = dict.fromkeys(KINDS, NONE | {"abstain": ""})
        return {"description": labels, "unsuitable": "the labels tell of an unsuitable picture", **empty}
    proposed = {}
    for kind in KINDS:
        rule = next((rule for rule in rules if rule.kind == kind and _has_label(labels, rule.given)), None)
        if rule is None:
            proposed[kind] = NONE
        elif _chance(prompt, kind) < _share(prompt, "abstains"):
            proposed[kind] = NONE | {"abstain": "the demonstration was told to abstain at times"}
        else:
            texts = {"question": rule.question, "target": rule.target, "reasoning": rule.reasoning}
            proposed[kind] = {"abstain": "", **texts}
    return {"description": labels, "unsuitable": "", **proposed}


def _check(prompt: Prompt, query: Record) -> Mapping[str, Any]:
    rule = _rule_of(query)
    held = {name: {"why": "as its rule says", "holds": rule.fails != name} for name in CONSTRAINTS}
    at_odds = _chance(prompt, "contradicts") < _share(prompt, "contradicts")
    return {"description": _labels(query), **held, "fits": bool(rule.fails) is at_odds}


def _vote(prompt: Prompt, triplet: Record) -> Mapping[str, str]:
    rule, theirs = _rule_of(triplet), triplet["candidate_labels"].casefold()
    texts = {"target_description": theirs, "input_description": _labels(triplet), "reasoning": rule.reasoning}
    if not theirs or _chance(prompt, "abstains") < _share(prompt, "abstains"):
        return {**texts, "verdict": "abstain"}
    slips = _chance(prompt, "slips") < _share(prompt, "slips")
    return {**texts, "verdict": "true" if _has_label(theirs, rule.answers) is not slips else "false"}


# -- rules and labels ---------------------------------------------------------------------------------------------


@cache
def _rules() -> tuple[tuple[str, ...], tuple[Rule, ...]]:
    table = tomllib.loads((files(__package__) / "demonstration.toml").read_text(encoding="utf-8"))
    rules = ({**rule, "given": tuple(rule["given"]), "answers": tuple(rule["answers"])} for rule in table["rules"])
    return tuple(table["unsuitable"]), tuple(Rule(**rule) for rule in rules)


def _rule_of(record: Record) -> Rule:
    return next(rule for rule in _rules()[1] if rule.question == record["question"])


def _labels(record: Record) -> str:
    return str(record["labels"]).casefold()


def _has_label(labels: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the labels, also with a number at its end."""
    return any(re.search(rf"(?<!\w){re.escape(word)}\d*(?!\w)", labels) for word in words)


# -- its mistakes -------------------------------------------------------------------------------------------------


def _share(prompt: Prompt, fault: str) -> float:
    share = prompt.get(fault, 0)
    if not isinstance(share, int | float):
        raise UsageError(f"the demonstration's {fault} is {share!r}; give a share from 0 to 1")
    return float(share)


def _chance(prompt: Prompt, what: str) -> float:
    """A number from 0 to 1 that depends on what is asked and of whom: the same mistake whenever it is asked."""
    parts = (what, prompt["use"], prompt.get("draw", 1), prompt["_task"], prompt["_about"]["id"])
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:6], "big") / 2**48
