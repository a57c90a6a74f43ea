"""How a conversation with pictures is put into a request and its reply is read, in the two protocols there are.

Messages are lists of dicts in the form of OpenAI's chat completions; Anthropic's is made from it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.llms.errors import NoReply, RetryableError
from eyespot.llms.replies import DECLINED, first_token, text_of
from eyespot.llms.unsupported_fields import LIMITS
from eyespot.types import Message, Price, Reply, Spent, Tokens, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

    Reader: TypeAlias = Callable[[Path], Image]

Body: TypeAlias = Mapping[str, Any]

IN = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
OUT = ("completion_tokens", "output_tokens")
CACHED = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
THOUGHTS = ("reasoning", "reasoning_content", "reasoning_details", "thinking")  # fields of a message
MOST_TOKENS = 1024  # of an answer, where the protocol wants a limit and none is given
DATA_URL = "data:image/jpeg;base64,"
SIDE = 768  # pixels of the longer side
QUALITY = 90


def usage_of(data: Body) -> Spent:
    """The tokens of an answer, in the names of either protocol; 0 where the server does not count.

    What a total has more than both is thought, which some servers count there alone.
    """
    counts = _counts(data)
    tokens_in, tokens_out = (sum(counts.get(name, 0) for name in names) for names in (IN, OUT))
    return Spent(tokens_in=tokens_in, tokens_out=max(tokens_out, counts.get("total_tokens", 0) - tokens_in))


def cache_of(data: Body) -> tuple[int, int]:
    """How many of the tokens that went in the server had read before, and how many it stored to read them again."""
    counts = _counts(data)
    return max(map(counts.get, CACHED, (0,) * len(CACHED))), counts.get("cache_creation_input_tokens", 0)


def counted(request: Body, data: Body) -> Body:
    """The answer with usage that counts: what the server leaves out is estimated, by pictures and four letters a token.

    An answer that is none stays as it is.
    """
    counts, usage = _counts(data), usage_of(data)
    choices = data.get("choices")
    rows = choices if isinstance(choices, list) else ()
    messages = [row.get("message") or row for row in rows if isinstance(row, Mapping)]
    parts = data.get("content") or messages or data.get("data") or data.get("results")
    outward = "total_tokens" in counts or any(name in counts for name in OUT)
    if not parts or (usage.tokens_in and outward):
        return data
    tokens = usage.tokens_in or _tokens_in(request), usage.tokens_out if outward else _words(parts)
    return {**data, "usage": dict(zip((IN[0], OUT[0]), tokens, strict=True))}


def likely(request: Body, price: Price | None) -> Spent:
    """What a request may cost: by its pictures, its letters and the most that its answer may have."""
    most = MOST_TOKENS if "messages" in request else 0
    tokens = _tokens_in(request), max((request[name] for name in LIMITS if name in request), default=most)
    return Spent(1, *tokens, price.of(*tokens) if price else 0.0)


def _tokens_in(request: Body) -> int:
    plain, pictures = without_pictures(request)
    usual = Tokens()
    return max(usual.words, _words(plain)) + len(pictures) * usual.picture


def _words(parts: Any) -> int:
    return len(json.dumps(parts, default=str)) // 4


def _counts(data: Body) -> dict[str, int]:
    """The counts of an answer's usage that are whole numbers, also those written as text or as 7.0."""
    usage = data.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    found = {}
    for name, value in {**(details if isinstance(details, Mapping) else {}), **usage}.items():
        with suppress(TypeError, ValueError, OverflowError):
            if float(value) >= 0 and not isinstance(value, bool):
                found[name] = int(float(value))
    return found


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


@dataclass(frozen=True)
class JpegEncoder:
    """Files to base64 JPEG whose longer side has at most `side` pixels; `read` decodes a file, upright, in RGB.

    What leaves is always encoded anew: the file's position, owner and other metadata stay here.
    """

    read: Reader
    side: int = SIDE

    def __post_init__(self) -> None:
        if self.side < 1:
            raise UsageError(f"a picture of {self.side} pixels shows nothing; give a side of 1 or more")

    def __call__(self, path: Path) -> str:
        """The picture's data; `NoReply` names the file that cannot be read."""
        try:
            image = self.read(path)
        except Exception as error:  # decoders raise whatever they like at damaged files
            raise NoReply(f"{path.name} cannot be read ({error})") from None
        smaller = image.convert("RGB")
        smaller.thumbnail((self.side, self.side))
        smaller.info = {}
        buffer = BytesIO()
        smaller.save(buffer, "JPEG", quality=QUALITY)
        return b64encode(buffer.getvalue()).decode()


def text_message(role: str, text: str) -> Message:
    """A message of words: role is "system", "user" or "assistant"."""
    return {"role": role, "content": text}


def image_message(pictures: Sequence[str], text: str, *, text_first: bool = False) -> Message:
    """A user's message of pictures (JPEG in base64) and words, last or first: what stays the same is then cached."""
    parts: list[Any] = [{"type": "image_url", "image_url": {"url": DATA_URL + picture}} for picture in pictures]
    parts.insert(0 if text_first else len(parts), {"type": "text", "text": text})
    return {"role": "user", "content": parts if pictures else text}


# -- OpenAI ---------------------------------------------------------------------------------------------------


class ChatCompletions:
    """OpenAI's chat completions, spoken by vLLM, SGLang, Ollama, llama.cpp and many hosts."""

    path = "/chat/completions"
    takes_forms = True  # whether a request may say the JSON schema of its answer
    takes_n = True  # whether a request may say how many choices its reply has

    def body(self, model: str, messages: Sequence[Message], options: Body) -> dict[str, Any]:
        """A request for the model's next message."""
        return {"model": model, "messages": list(messages), **options}

    def reply(self, data: Body) -> Reply:
        """The answer's content; `RetryableError` if it is not what the protocol promises."""
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        finish, usage = str(choice.get("finish_reason") or ""), usage_of(data)
        message = choice.get("message")
        if not isinstance(message, dict):
            failed = data.get("error") or choice.get("error") or finish.casefold() == "error"
            if failed or not (finish or usage.tokens):  # with either, the model was asked and said nothing
                raise RetryableError(f"the answer has no message{_complaint(data)}")
            message = {}
        text, thought = text_of(message.get("content"))
        thought = thought or any(message.get(name) for name in THOUGHTS)
        return Reply(
            text=text,
            logprobs=first_token(choice.get("logprobs"), text, thought),
            usage=usage,
            finish=finish,
            declined=str(message.get("refusal") or _declined(finish)),
            model=str(data.get("model") or ""),
            fingerprint=str(data.get("system_fingerprint") or ""),
            thought=thought,
        )


def _declined(finish: str) -> str:
    """What a reason for stopping says of a refusal; "" if it is another reason."""
    return f"it was stopped for {finish!r}" if DECLINED.search(finish) else ""


def _complaint(data: Body) -> str:
    """Some servers send their errors with status 200."""
    return f" ({data['error']})"[:200] if data.get("error") else ""


# -- Anthropic ------------------------------------------------------------------------------------------------


class AnthropicMessages:
    """Anthropic's messages: the system's words stand apart, pictures are sources, no token probabilities."""

    path = "/v1/messages"
    takes_forms = False
    takes_n = False

    def body(self, model: str, messages: Sequence[Message], options: Body) -> dict[str, Any]:
        system = "\n".join(str(message["content"]) for message in messages if message["role"] == "system")
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
        text, thought = text_of(content)
        model = str(data.get("model") or "")
        return Reply(text, None, usage_of(data), finish, _declined(finish), model, thought=thought)


def _part(part: Body) -> dict[str, Any]:
    if part["type"] != "image_url":
        return dict(part)
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    own = {name: value for name, value in part.items() if name != "image_url"}
    return {**own, "type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


Dialect: TypeAlias = ChatCompletions | AnthropicMessages
