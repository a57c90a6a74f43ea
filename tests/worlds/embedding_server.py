"""A server that embeds messages as vLLM does, by arithmetic: vectors of eight numbers from the bytes that it gets.

The first three are red, green and blue: a picture's mean colour, the colours that words name. A picture with the word
"next" is one input of its own: its colours move on by one, which no sum of picture and words gives.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from tests.worlds.servers import Act, Double, Response, Seen, error

DIM = 8
MODELS, EMBEDDINGS = "/v1/models", "/v1/embeddings"


def serving(model: str = "tiny", then: Act | None = None, **card: Any) -> Double:
    """A server of one model, which its list tells with what `card` says of it."""
    listed = Response(data={"object": "list", "data": [{"id": model, "object": "model", **card}]})
    return Double(then=then or embedded, offers={MODELS: lambda _: listed})


def embedded(seen: Seen) -> Response:
    return answer(vector(seen))


def answer(*vectors: Any) -> Response:
    """These vectors, in the form of the protocol."""
    rows = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors)]
    return Response(data={"object": "list", "data": rows, "usage": {"prompt_tokens": 7, "total_tokens": 7}})


def picture_of(seen: Seen) -> Image.Image | None:
    """The picture as it came."""
    urls = [part["image_url"]["url"] for part in _content(seen) if part["type"] == "image_url"]
    return Image.open(io.BytesIO(base64.b64decode(urls[0].partition(";base64,")[2]))) if urls else None


def words_of(seen: Seen) -> str:
    """The words beside it."""
    return " ".join(part["text"] for part in _content(seen) if part["type"] == "text")


def vector(seen: Seen) -> list[float]:
    """Eight numbers of any length: colours, and a little that every single byte decides."""
    picture, words = picture_of(seen), words_of(seen)
    named = np.array([float(colour in words) for colour in ("red", "green", "blue")])
    shown = np.zeros(3) if picture is None else np.asarray(picture.convert("RGB"), float).mean((0, 1)) / 255
    colours = np.roll(shown, 1) if picture is not None and "next" in words else shown + named
    bytes = hashlib.sha256(repr(seen.body["messages"]).encode()).digest()[: DIM - 3]
    return [*(3 * colours), *(0.1 + np.frombuffer(bytes, np.uint8) / 2550)]


def refusing(kind: str) -> Act:
    """A server of a model without "both" a picture and words, any "picture", "words" alone, or any "messages"."""

    def act(seen: Seen) -> Response:
        kinds = {part["type"] for part in _content(seen)}
        refused = {"both": kinds == {"image_url", "text"}, "picture": "image_url" in kinds, "messages": True}
        refused["words"] = kinds == {"text"}
        return error(400, f"no {kind} here") if refused[kind] else embedded(seen)

    return act


def _content(seen: Seen) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = seen.body["messages"][-1]["content"]
    return found
