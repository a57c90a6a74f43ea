"""Anthropic's models: `anthropic:MODEL`. They tell no token probabilities, so they grade from 0 to 10.

The key is ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL or the option `url` names another address of the same protocol.
"""

from __future__ import annotations

from typing import Any

from eyespot.judges._endpoint import OPTIONS as ENDPOINT, EndpointJudge, endpoint_judge

SPELLING = "anthropic:MODEL"
KIND = "endpoint"
OFFLINE = False
NEEDS = "a key (ANTHROPIC_API_KEY)"
OPTIONS = ENDPOINT


def load(rest: str = "", **options: Any) -> EndpointJudge:
    """The judge `anthropic:MODEL`; options as in `endpoint_judge`. No request is sent before the first pair.

    `answer` is how it answers: "grades" (0 to 10) or "words".
    Raises: UsageError without a model, without a key, and for options that do not exist.
    """
    return endpoint_judge("anthropic", rest, options, ("grades", "words"))
