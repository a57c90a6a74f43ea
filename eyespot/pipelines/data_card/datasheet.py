"""The questions of a datasheet (Gebru and others, 2021; INQUIRE answers them in appendix K), and what the run answers.

A recipe answers the rest under `[card.SECTION]`, by the short names here. What nobody answered is said to be open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eyespot
from eyespot.pipelines import StepResult
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError, quantity

QUESTIONS: dict[str, dict[str, str]] = toml_of(Path(__file__).with_name("questions.toml"))


@dataclass(frozen=True)
class Answered:
    """A question with its answer, "" where nobody gave one."""

    section: str
    name: str
    question: str
    answer: str


def datasheet_answers(done: Sequence[StepResult], answers: Mapping[str, Any]) -> list[Answered]:
    """Every question, in order; `answers` are {section: {name: text}} and go before what the run itself can say."""
    for section, given in answers.items():
        if section not in QUESTIONS or not isinstance(given, Mapping):
            raise UsageError(f"a data card has no part [card.{section}]; there are: {', '.join(QUESTIONS)}")
        for name in given:
            if name not in QUESTIONS[section]:
                raise UsageError(f"[card.{section}] asks no {name!r}; it asks: {', '.join(QUESTIONS[section])}")
    facts: dict[str, dict[str, str]] = {}
    if done:
        entered = sum(one.counts.added for one in done)
        lost = sum(sum(one.counts.dropped.values()) for one in done)
        facts["composition"] = {
            "count": f"{done[-1].counts.kept:,}.",
            "sample": f"Of {quantity(entered, 'record')} that entered, {lost:,} were left out, each for a reason.",
        }
        facts["preparation"] = {
            "steps": " ".join(f"{one.step.name}: {one.step.about}" for one in done if one.step.about),
            "raw": "What was left out lies beside what was kept, with the reason, step by step.",
            "software": f"With eyespot {eyespot.__version__} and the steps below.",
        }
    given = {section: {name: text for name, text in of.items() if text} for section, of in answers.items()}
    found = {section: {**facts.get(section, {}), **given.get(section, {})} for section in QUESTIONS}
    return [
        Answered(section, name, question, str(found[section].get(name, "")))
        for section, questions in QUESTIONS.items()
        for name, question in questions.items()
    ]


def to_fill(datasheet: Iterable[Answered]) -> str:
    """The open questions as the part of a recipe that answers them."""
    lines: list[str] = []
    for one in datasheet:
        if not one.answer:
            head = f"[card.{one.section}]"
            lines += [head] * (head not in lines) + [f'{one.name} = ""  # {one.question}']
    return "\n".join(lines)
