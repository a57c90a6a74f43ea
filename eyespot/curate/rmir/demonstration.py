"""A teacher for demonstrations: it asks, checks and judges by rules over labels that are known, and sees no picture.

It stands where a vision–language model would, so that the whole pipeline runs on real photos without one. Its sets test
nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from eyespot.pipelines import CallMeter, Prompt, Record

NAME = "demonstration"
NONE = {"abstain": "no rule of the demonstration fits the labels", "question": "", "target": "", "reasoning": ""}


@dataclass(frozen=True)
class Rule:
    """Labels that call for a question, and labels that answer it; `fails` is the rule that a bad question breaks."""

    kind: str
    given: tuple[str, ...]
    question: str
    target: str
    answers: tuple[str, ...]
    reasoning: str
    fails: str = ""


def teacher(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """A client for models whose `use` begins with `demonstration`; it spends nothing."""
    task, about = prompt["_task"], prompt["_about"]
    if task == "judge":
        return _vote(about)
    return {"question": _questions, "check": _check}[task](about, prompt["_names"])


# -- its three answers --------------------------------------------------------------------------------------------


def _questions(photo: Record, kinds: Sequence[str]) -> Mapping[str, Any]:
    labels, proposed = _labels(photo), dict[str, Mapping[str, str]]()
    rules = tuple(one for one in _rules() if _has_label(labels, one.given))
    for kind in kinds:
        texts = (asdict(rule) for rule in rules if rule.kind == kind)
        proposed[kind] = next(({name: one.get(name, "") for name in NONE} for one in texts), NONE)
    return {"description": labels, "unsuitable": "", **proposed}


def _check(query: Record, rules: Sequence[str]) -> Mapping[str, Any]:
    rule = _rule_of(query)
    held = {name: {"why": "as its rule says", "holds": rule.fails != name} for name in rules}
    return {"description": _labels(query), **held, "fits": not rule.fails}


def _vote(triplet: Record) -> Mapping[str, str]:
    rule, labels = _rule_of(triplet), triplet["candidate_labels"].casefold()
    texts = {"target_description": labels, "input_description": _labels(triplet), "reasoning": rule.reasoning}
    if not labels:
        return {**texts, "verdict": "abstain"}
    return {**texts, "verdict": "true" if _has_label(labels, rule.answers) else "false"}


# -- rules and labels ---------------------------------------------------------------------------------------------


@cache
def _rules() -> tuple[Rule, ...]:
    table = tomllib.loads((files(__package__) / "demonstration.toml").read_text(encoding="utf-8"))
    rules: Iterator[dict[str, Any]] = (
        {key: tuple(it) if isinstance(it, list) else it for key, it in rule.items()} for rule in table["rules"]
    )
    return tuple(Rule(**rule) for rule in rules)


def _rule_of(record: Record) -> Rule:
    same = (rule for rule in _rules() if rule.question == record["question"])
    return next(rule for rule in same if _has_label(_labels(record), rule.given))


def _labels(record: Record) -> str:
    return str(record["labels"]).casefold()


def _has_label(labels: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the labels, also with a number at its end."""
    return any(re.search(rf"(?<!\w){re.escape(word)}\d*(?!\w)", labels) for word in words)
