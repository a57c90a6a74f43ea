"""Anthropic's models: `anthropic:MODEL`. They tell no token probabilities, so they grade from 0 to 10, or vote.

The key is ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL or the option `url` names another address of the same protocol.
"""

from __future__ import annotations

from typing import Any

from eyespot.judges import _endpoint
from eyespot.judges._endpoint.ways import GRADES, Grades, Votes, Words
from eyespot.judges._prompt import PLAIN
from eyespot.types import UsageError

SPELLING = "anthropic:MODEL"
KIND = "endpoint"
OFFLINE = False
NEEDS = "the extra [llm]; a key (ANTHROPIC_API_KEY)"
OPTIONS = _endpoint.OPTIONS
ANSWERS = ("grades", "votes", "words")


def load(rest: str = "", **options: Any) -> _endpoint.EndpointJudge:
    """The judge `anthropic:MODEL`; options as in `EndpointJudgeSettings`. No request is sent before the first pair.

    `answer` is how it answers: "grades" (0 to 10), "votes" (the share of yes among `votes` answers) or "words".
    Raises: UsageError without a model, without a key, and for options that do not exist.
    """
    settings = _endpoint.EndpointJudgeSettings.of("anthropic", options)
    if not rest:
        raise UsageError(f"name the model that is to judge, as in {SPELLING}")
    wording = settings.wording or (PLAIN if settings.answer in ("votes", "words") else GRADES)
    modes: dict[str, _endpoint.AnswerMode] = {
        "grades": Grades(settings.answer_tokens),
        "votes": Votes(wording, settings.votes, settings.answer_tokens),
        "words": Words(wording, settings.answer_tokens),
    }
    mode = modes.get(settings.answer or "grades")
    if mode is None:
        raise UsageError(f"anthropic cannot answer in {settings.answer!r}; choose one of: {', '.join(ANSWERS)}")
    return settings.judge(f"anthropic:{rest}", mode, wording)
