"""What the models of an RMIR pipeline answer: three questions, a check of one, a vote."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, TypeAlias

from eyespot.pipelines import Declared
from eyespot.pipelines.prompts import AnswerForm, template

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


def wording(declared: Declared, name: str) -> str:
    """The step's prompt: that of the recipe, or else ours of this name."""
    return template(declared, (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8"))
