"""What an encoder behind an address is told, and how inputs become requests and answers vectors.

Options stand before a file that EYESPOT_EMBEDDINGS_SETTINGS names. The request is vLLM's: `messages` in place of
`input`, one user message whose content is the picture as a data URL, then the words.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from eyespot.encoders._mllm_inputs import (
    ANSWER,
    MOST_PIXELS,
    MOST_RATIO,
    REPRESENT,
    WORDS,
    Instructions,
    ModelInput,
    said_in,
    unpacked,
)
from eyespot.llms import BadAnswer, Endpoint, load, text_message
from eyespot.settings.fields import Settings
from eyespot.types import UsageError

PATH = "/embeddings"
FORMATS: dict[str, dict[str, Any]] = {"jpeg": {"quality": 95}, "png": {}}  # as Pillow writes them


class NotFiniteVector(BadAnswer):
    """An answer whose numbers are not a direction: one is not finite, or all are nought."""


@dataclass(frozen=True)
class ServedPrompt:
    """All that decides what a model is told and shown; `request` are further fields of the request."""

    instructions: Instructions
    system: str
    request: Mapping[str, Any]
    pictures: str

    def body(self, model: str, one: ModelInput) -> dict[str, Any]:
        """The request for one vector."""
        words = self.instructions.around(one.words, beside_picture=one.picture is not None)
        if one.picture is None:
            picture = []
        else:
            buffer = BytesIO()
            unpacked(one.picture).save(buffer, self.pictures.upper(), **FORMATS[self.pictures])
            url = f"data:image/{self.pictures};base64,{base64.b64encode(buffer.getvalue()).decode()}"
            picture = [{"type": "image_url", "image_url": {"url": url}}]
        content = [*picture, *([{"type": "text", "text": words}] if words or not picture else [])]
        messages = [
            *([text_message("system", self.system)] if self.system else []),
            {"role": "user", "content": content},
        ]
        return {"model": model, "messages": messages, "encoding_format": "float", **self.request}

    def preprocessing(self, composes: bool) -> str:
        """The same as JSON, for a space's preprocessing, with whether a picture and words are one input."""
        sent = {"format": self.pictures, **FORMATS[self.pictures], "pixels": MOST_PIXELS, "ratio": MOST_RATIO}
        instructions = self.instructions.model_dump(exclude={"reasoning"})
        prompt = {"instructions": instructions, "system": self.system, "request": self.request}
        return json.dumps({**prompt, "pictures": sent, "composed": composes}, sort_keys=True, default=str)


def vector_of(answer: Mapping[str, Any]) -> NDArray[np.float32]:
    """The vector of an answer, of unit length, (dim,); `BadAnswer` if it is not exactly one of plain numbers."""
    listed = answer.get("data")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        # Some servers send their errors with status 200
        message = answer.get("error") or answer.get("message")
        text = f" ({message})"[:200] if message else ""
        raise BadAnswer(f"the answer has no vectors{text}")
    if len(listed) != 1:
        raise BadAnswer(f"the answer has {len(listed)} vectors for one input")
    given = listed[0].get("embedding")
    if isinstance(given, str):
        raise BadAnswer("the vector came as text, though numbers were asked for")
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadAnswer("the vector is not made of numbers") from None
    if numbers.ndim == 2:
        raise BadAnswer(f"one input gets {len(numbers)} vectors; serve the model with one for all its tokens")
    if numbers.ndim != 1 or not len(numbers):
        raise BadAnswer("the vector is not made of numbers")
    largest = np.abs(numbers).max()
    if not np.isfinite(largest) or largest == 0:
        raise NotFiniteVector("the vector is nought" if largest == 0 else "the vector has numbers that are not finite")
    scaled = numbers / largest  # the square of a large number would be no number
    return np.asarray(scaled / np.linalg.norm(scaled), np.float32)


# -- options ---------------------------------------------------------------------------------------------------

FILE = "EYESPOT_EMBEDDINGS_SETTINGS"
URLS = ("EYESPOT_EMBEDDINGS_URL", "OPENAI_BASE_URL")
OURS = ("model", "messages", "input", "encoding_format")  # fields of a request that cannot be said otherwise

# Models that were trained to embed take the words as they are.
PLAIN = Instructions(picture="", text=WORDS, both=WORDS)
FAMILIES = {"plain": PLAIN, "chat": ANSWER, "vlm2vec": REPRESENT}

Whole = Annotated[int, Field(gt=0, strict=True)]
Seconds = Annotated[float, Field(gt=0, strict=True)]


class ServedSettings(Settings):
    """Options of `load`, with their defaults."""

    url: str = ""  # the server's address; "": from the environment
    key: str = ""  # "": from the environment; a server of one's own needs none
    family: Literal["", "plain", "chat", "vlm2vec"] = ""  # whose instructions; "": by the model's name
    instructions: dict[str, str] = Field({})  # picture, text, both: instead of the family's
    system: str = ""  # a message before the input's own; "": none
    request: dict[str, Any] = Field({})  # further fields of each request
    pictures: Literal["jpeg", "png"] = "jpeg"  # how they are sent
    workers: Whole = 8  # requests under way at once
    batch: Whole = 0  # pictures that are taken at once; 0: two for each worker
    requests_per_minute: Whole | None = None
    timeout: Seconds = 60.0  # seconds without a byte until an answer counts as lost
    attempts: Whole = 6  # of one request, the first included
    first_rest: Seconds = 1.0  # seconds; the rests after it may be twice as long each

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ServedSettings:
        """What the file says and, before that, what is given; `UsageError` for what is unknown or senseless."""
        path = os.environ.get(FILE)
        config = said_in(Path(path).expanduser()) if path else {}
        if "key" in config:
            raise UsageError(f"{path} says a key; leave keys to OPENAI_API_KEY, which nobody shares by mistake")
        settings = cls.read(**config | {name: value for name, value in given.items() if value is not None})
        if taken := [one for one in OURS if one in settings.request]:
            raise UsageError(f"served: request says {taken[0]!r}, which is set already; leave it out")
        return settings

    def wording(self, model: str) -> ServedPrompt:
        """How inputs are put to this model."""
        family = self.family or ("vlm2vec" if "vlm2vec" in model.casefold() else "plain")
        words = FAMILIES[family].changed(self.instructions)
        return ServedPrompt(words, self.system, self.request, self.pictures)

    def endpoint(self, model: str) -> Endpoint:
        """The model at its address; `UsageError` without one."""
        url = self.url or next((os.environ[name] for name in URLS if os.environ.get(name)), "")
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            given = f"{url!r} is not an address" if url else "no server is named"
            raise UsageError(f"{given}; set EYESPOT_EMBEDDINGS_URL as in http://localhost:8000/v1")
        retrying = {name: getattr(self, name) for name in ("requests_per_minute", "timeout", "attempts", "first_rest")}
        return load(f"openai:{model}", url=url, key=self.key or None, **retrying)
