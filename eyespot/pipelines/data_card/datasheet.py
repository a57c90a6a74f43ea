"""The questions of a datasheet (Gebru and others, 2021; INQUIRE answers them in appendix K), and what the run answers.

A recipe answers the rest under `[card.SECTION]`, by the short names here. What nobody answered is said to be open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import eyespot
from eyespot.pipelines import StepResult
from eyespot.types import UsageError

QUESTIONS: dict[str, dict[str, str]] = {
    "motivation": {
        "purpose": "What is the collection for, and which gap does it fill?",
        "makers": "Who made it, and on whose behalf?",
        "funding": "Who paid for it?",
    },
    "composition": {
        "items": "What does one record stand for, and are there several kinds?",
        "count": "How many records are there?",
        "sample": "Is it all there is, or a sample, and how was that drawn?",
        "fields": "What does a record hold?",
        "labels": "What is said to be true of it, and by whom?",
        "missing": "What is missing from records, and why?",
        "relations": "How do records hang together?",
        "splits": "Which splits are meant for what, and how were they made?",
        "errors": "Which errors, noise and repetitions are known?",
        "elsewhere": "What does it need that lies elsewhere, and will that last?",
        "confidential": "Does it hold anything confidential?",
        "offensive": "May looking at it hurt or disturb somebody?",
        "people": "Are there people in it, and can they be told apart or recognised?",
        "sensitive": "Does it tell of health, faith, origin, or places that should stay secret?",
    },
    "collection": {
        "source": "Where do the data come from, and how directly were they observed?",
        "means": "With which instruments, programs and hands were they gathered, and how were these checked?",
        "sampling": "By which rule was chosen what to take?",
        "workers": "Who did the work, and what were they paid?",
        "period": "From when are the data, and from when the collecting?",
        "ethics": "Who reviewed that it may be done?",
        "consent": "Do those who made or are in the pictures know, did they agree, and can they withdraw?",
    },
    "preparation": {
        "steps": "What was done to the data after they were gathered?",
        "raw": "Is what was left out or changed still there?",
        "software": "With which software can this be done again?",
    },
    "uses": {
        "used": "What has it been used for?",
        "list": "Where are such uses listed?",
        "others": "What else could it serve?",
        "caution": "What about its making should a user know, so that nobody is treated unfairly?",
        "unfit": "What should it not be used for?",
    },
    "distribution": {
        "whom": "Who may have it?",
        "how": "How is it handed out, and under which lasting name?",
        "when": "Since when?",
        "licence": "Under which licence and terms?",
        "third": "Which rights of others lie on parts of it?",
        "export": "Which laws restrict where it may go?",
    },
    "maintenance": {
        "keeper": "Who looks after it, and how are they reached?",
        "errata": "Where are mistakes listed?",
        "updates": "Will it be changed, by whom, how often, and how is that told?",
        "removal": "How long may what concerns people be kept, and how is a picture taken out?",
        "versions": "Do older versions stay?",
        "contributions": "How can others add to it?",
    },
}


@dataclass(frozen=True)
class Answered:
    """A question with its answer, "" where nobody gave one."""

    section: str
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
            "sample": f"Of {entered:,} records that entered, {lost:,} were left out, each for a reason.",
        }
        facts["preparation"] = {
            "steps": " ".join(f"{one.step.name}: {one.step.about}" for one in done if one.step.about),
            "raw": "What was left out lies beside what was kept, with the reason, step by step.",
            "software": f"With eyespot {eyespot.__version__} and the steps below.",
        }
    return [
        Answered(section, question, str(answers.get(section, {}).get(name, "")) or facts.get(section, {}).get(name, ""))
        for section, questions in QUESTIONS.items()
        for name, question in questions.items()
    ]


def parted(several: Iterable[Answered]) -> tuple[list[Answered], list[str]]:
    """The questions that are answered, and those that are open."""
    every = list(several)
    return [one for one in every if one.answer], [one.question for one in every if not one.answer]
