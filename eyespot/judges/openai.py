"""Models behind OpenAI's protocol: `openai:MODEL`; OpenAI itself, vLLM, SGLang, Ollama, llama.cpp and many hosts.

The address is OPENAI_BASE_URL or the option `url`, the key OPENAI_API_KEY; a local server needs none. The score is the
share of yes in the first token of the answer (INQUIRE, appendix on re-ranking). A reply without token probabilities
counts by its words.
"""

from __future__ import annotations

from typing import Any

from eyespot.judges._endpoint import OPTIONS as ENDPOINT, EndpointJudge, endpoint_judge

SPELLING = "openai:MODEL"
KIND = "endpoint"
OFFLINE = "with a local server"
NEEDS = "an endpoint (OPENAI_BASE_URL) and its key (OPENAI_API_KEY), which a local server does without"
OPTIONS = ENDPOINT


def load(rest: str = "", **options: Any) -> EndpointJudge:
    """The judge `openai:MODEL`; options as in `endpoint_judge`. No request is sent before the first pair.

    `answer` is how it answers: "probabilities" (of the first token), "words" or "grades" (0 to 10).
    Raises: UsageError without a model, without address and key, and for options that do not exist.
    """
    return endpoint_judge("openai", rest, options, ("probabilities", "words", "grades"))
