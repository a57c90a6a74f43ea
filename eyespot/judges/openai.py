"""Models behind OpenAI's protocol: `openai:MODEL`; OpenAI itself, vLLM, SGLang, Ollama, llama.cpp and many hosts.

The address is OPENAI_BASE_URL or the option `url`, the key OPENAI_API_KEY; a local server needs none. The score is the
share of yes in the first token of the answer (INQUIRE, appendix on re-ranking). A reply without token probabilities
counts by its words; a server whose first reply has none is asked for its own yes/no decisions (/v1/systemone) instead.
"""

from __future__ import annotations

from typing import Any

from eyespot.judges import _endpoint
from eyespot.judges._endpoint.first_token import FirstToken
from eyespot.judges._endpoint.ways import GRADES, Grades, Votes, Words
from eyespot.judges._prompt import PLAIN
from eyespot.types import UsageError

SPELLING = "openai:MODEL"
KIND = "endpoint"
OFFLINE = "with a local server"
NEEDS = "the extra [llm]; an endpoint (OPENAI_BASE_URL) and its key (OPENAI_API_KEY), which a local server does without"
OPTIONS = _endpoint.OPTIONS
ANSWERS = ("probabilities", "words", "grades", "votes")


def load(rest: str = "", **options: Any) -> _endpoint.EndpointJudge:
    """The judge `openai:MODEL`; options as in `EndpointJudgeSettings`. No request is sent before the first pair.

    `answer` is how it answers: "probabilities" (of the first token), "words", "grades" (0 to 10) or "votes".
    Raises: UsageError without a model, without address and key, and for options that do not exist.
    """
    settings = _endpoint.EndpointJudgeSettings.of("openai", options)
    if not rest:
        raise UsageError(f"name the model that is to judge, as in {SPELLING}")
    wording = settings.wording or (GRADES if settings.answer == "grades" else PLAIN)
    modes: dict[str, _endpoint.AnswerMode] = {
        "probabilities": FirstToken(wording, settings.answer_tokens),
        "grades": Grades(settings.answer_tokens),
        "votes": Votes(wording, settings.votes, settings.answer_tokens),
        "words": Words(wording, settings.answer_tokens),
    }
    mode = modes.get(settings.answer or "probabilities")
    if mode is None:
        raise UsageError(f"openai cannot answer in {settings.answer!r}; choose one of: {', '.join(ANSWERS)}")
    return settings.judge(f"openai:{rest}", mode, wording)
