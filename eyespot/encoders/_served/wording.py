"""How a picture, words, or both become one request for a vector, and how the vector is read from the answer.

The request is vLLM's: `messages` in place of `input`, one user message whose content is the picture as a data URL, then
the words; the server's own chat template makes the model's tokens of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.encoders._mllm.families import Instructions
from eyespot.encoders._mllm.packing import MOST_PIXELS, MOST_RATIO, ModelInput, unpacked
from eyespot.llms import BadAnswer, text_message

PATH = "/embeddings"
FORMATS: dict[str, dict[str, Any]] = {"jpeg": {"quality": 95}, "png": {}}  # as Pillow writes them


class NotFiniteVector(BadAnswer):
    """An answer whose numbers are no direction: one is not finite, or all are nought."""


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
        instructions = {name: words for name, words in asdict(self.instructions).items() if name != "reasoning"}
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
    unit: NDArray[np.float32] = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return unit
