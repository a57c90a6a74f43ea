"""How a conversation is put into a request and its reply is read, in the two protocols there are.

Messages are lists of dicts in the form of OpenAI's chat completions; Anthropic's is made from it.
"""

from __future__ import annotations

import hashlib
import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from eyespot.llms.errors import RetryableError
from eyespot.types import Message, Reply, Spent

Body: TypeAlias = Mapping[str, Any]

IN = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
OUT = ("completion_tokens", "output_tokens")
MOST_TOKENS = 1024  # of an answer, where the protocol wants a limit and none is given
DATA_URL = "data:image/jpeg;base64,"


class Dialect(Protocol):
    """A protocol: its path, the form of a request and of an answer."""

    path: str
    takes_forms: bool  # whether a request may say the JSON schema of its answer

    def body(self, model: str, messages: Sequence[Message], options: Body) -> dict[str, Any]:
        """A request for the model's next message."""
        ...

    def reply(self, data: Body) -> Reply:
        """The answer's content; `RetryableError` if it is not what the protocol promises."""
        ...


def usage_of(data: Body) -> Spent:
    """The tokens of an answer, in the names of either protocol; 0 where the server does not count."""
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens = [sum(count for name in names if isinstance(count := counts.get(name), int)) for names in (IN, OUT)]
    return Spent(tokens_in=max(0, tokens[0]), tokens_out=max(0, tokens[1]))


def without_pictures(body: Body) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request with "<picture 1>", … in place of its pictures, and the SHA-256 of each of these files."""
    pictures: list[str] = []

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            picture = value.get("type") in ("base64", "image")
            return {key: plain(part, key if picture else "") for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        if not isinstance(value, str) or not (name == "data" or value.startswith(DATA_URL)):
            return value
        pictures.append(hashlib.sha256(b64decode(value.removeprefix(DATA_URL))).hexdigest())
        return f"<picture {len(pictures)}>"

    return plain(body), tuple(pictures)


# -- messages -----------------------------------------------------------------------------------------------


def text_message(role: str, text: str) -> Message:
    """A message of words: role is "system", "user" or "assistant"."""
    return {"role": role, "content": text}


def image_message(pictures: Sequence[str], text: str) -> Message:
    """A user's message of pictures (JPEG in base64) and words."""
    parts: list[Any] = [{"type": "image_url", "image_url": {"url": DATA_URL + picture}} for picture in pictures]
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}


# -- OpenAI ---------------------------------------------------------------------------------------------------


class ChatCompletions:
    """OpenAI's chat completions, spoken by vLLM, SGLang, Ollama, llama.cpp and many hosts."""

    path = "/chat/completions"
    takes_forms = True

    def body(self, model: str, messages: Sequence[Message], options: Body) -> dict[str, Any]:
        return {"model": model, "messages": list(messages), **options}

    def reply(self, data: Body) -> Reply:
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            raise RetryableError(f"the answer has no message{_complaint(data)}")
        finish = str(choice.get("finish_reason") or "")
        filtered = "a content filter" if finish == "content_filter" else ""
        text = _text(message.get("content"))
        logprobs = choice.get("logprobs")
        content = logprobs.get("content") if isinstance(logprobs, dict) else None
        if not isinstance(content, list) or not content or not isinstance(content[0], dict):
            first_token = None
        else:
            tokens = content[0].get("top_logprobs") or content[:1]  # without a list at least the one it chose
            first_token = tuple(
                (str(token.get("token")), float(value))
                for token in tokens
                if isinstance(token, dict) and isinstance(value := token.get("logprob"), int | float)
                if not math.isnan(value) and value < 0.01  # 1 may come out rounded up
            )
        return Reply(
            text=text,
            logprobs=first_token,
            usage=usage_of(data),
            finish=finish,
            declined=str(message.get("refusal") or filtered),
            model=str(data.get("model") or ""),
            fingerprint=str(data.get("system_fingerprint") or ""),
        )


def _complaint(data: Body) -> str:
    """Some servers send their errors with status 200."""
    return f" ({data['error']})"[:200] if data.get("error") else ""


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


# -- Anthropic ------------------------------------------------------------------------------------------------


class AnthropicMessages:
    """Anthropic's messages: the system's words stand apart, pictures are sources, no token probabilities."""

    path = "/v1/messages"
    takes_forms = False

    def body(self, model: str, messages: Sequence[Message], options: Body) -> dict[str, Any]:
        system = "\n".join(_text(message["content"]) for message in messages if message["role"] == "system")
        turns = []
        for message in messages:
            content = message["content"]
            if message["role"] != "system":
                parts = content if isinstance(content, str) else [_part(part) for part in content]
                turns.append({"role": message["role"], "content": parts})
        words = {"system": system} if system else {}
        return {"model": model, "messages": turns, "max_tokens": MOST_TOKENS, **words, **options}

    def reply(self, data: Body) -> Reply:
        content, finish = data.get("content"), str(data.get("stop_reason") or "")
        if not isinstance(content, list):
            raise RetryableError(f"the answer has no content{_complaint(data)}")
        declined = "the model refuses" if finish == "refusal" else ""
        return Reply(_text(content), None, usage_of(data), finish, declined, str(data.get("model") or ""))


def _part(part: Body) -> dict[str, Any]:
    if part["type"] != "image_url":
        return dict(part)
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
