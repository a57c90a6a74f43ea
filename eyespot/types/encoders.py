"""Vector spaces, and the encoders that put pictures and words into them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from eyespot.types.messages import Progress, no_progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Vectors: TypeAlias = NDArray[np.float32]  # (rows, dim), each row of unit length
    Pixels: TypeAlias = NDArray[Any]  # one picture as a model takes it, or a batch of them
    Mask: TypeAlias = NDArray[np.bool_]  # (rows,), True where a row may be found
else:
    # The command line needs this file to show its help, and numpy is half of what that would cost.
    Vectors = Pixels = Mask = Any


@dataclass(frozen=True)
class Space:
    """What two vectors must share to be compared: encoder, revision, weights and preprocessing.

    `weights` and `preprocessing` are digests or exact descriptions; any change to them is another space.
    """

    encoder: str  # the name that loads it again: "starter", "open_clip:ViT-B-32/openai"
    revision: str
    weights: str
    preprocessing: str
    dim: int

    @property
    def digest(self) -> str:
        """Sixteen hex digits that name this space and no other."""
        parts = (self.encoder, self.revision, self.weights, self.preprocessing, str(self.dim))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    @property
    def picture_view(self) -> str:
        """How a picture is seen, `centre crop of 224 x 224` or `longer side 384`; empty where no settings say it."""
        try:
            image = json.loads(self.preprocessing)["image"]
        except (ValueError, KeyError, TypeError):
            return ""
        if long := image.get("longer_side"):
            return f"longer side {long}, positions interpolated"
        cropped = image.get("do_center_crop") or image.get("resize_mode") == "shortest"
        size = image.get("crop_size") if image.get("do_center_crop") else image.get("size")
        sides = (size["height"], size["width"]) if isinstance(size, dict) and "height" in size else size
        if not isinstance(sides, tuple | list):
            return ""
        how = "centre crop of" if cropped else "padded to" if image.get("resize_mode") == "longest" else "squashed to"
        return f"{how} {sides[0]} x {sides[1]}"


class PixelReader(Protocol):
    """What turns a picture into the array that a model takes; it can be pickled where it works without the model."""

    min_side: int | None  # a JPEG may be decoded at a reduced scale while its shorter side stays this long; None: never

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture, decoded, to the array the model takes (no batch axis)."""


class Encoder(Protocol):
    """Pictures and words to unit vectors of one space.

    `read` runs in many threads at once and must not share state; `encode_pixels` and `encode_texts` are called
    from one thread. The same array in the same batch gives the same bits. A picture that cannot be embedded gets a row
    of NaN; an encoder that is an `EncoderWithNotes` says why in its notes.
    """

    space: Space
    batch: int  # how many pictures `encode_pixels` likes at once
    min_side: int | None  # a JPEG may be decoded at a reduced scale while its shorter side stays this long; None: never
    licence: str  # of the weights, as SPDX or in words

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture, decoded, to the array the model takes (no batch axis)."""

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """A batch of what `read` gave, (n, ...), to unit vectors (n, dim)."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, or one, to unit vectors (n, dim); the encoder's own prompt rules are applied here."""

    def encode(self, pictures: Any, *, errors: str = "raise", progress: Progress = no_progress) -> Vectors:
        """Pictures in any form to unit vectors (n, dim); `eyespot.encoders.PictureEncoder` brings it."""

    def tokens_in(self, text: str) -> int | None:
        """How many tokens it reads of a text; None where nobody knows."""

    def caveat(self, text: str) -> str | None:
        """One sentence if the encoder does not understand this text, see what it asks for, or read it to its end."""

    def weakest_match(self, text: str) -> float | None:
        """A best text→image score below this is probably no match for this text; None: not calibrated."""


@runtime_checkable
class ProcessReadable(Protocol):
    """An encoder for which other processes can read pictures."""

    on_accelerator: bool  # whether the processors are free while it embeds

    @property
    def reader(self) -> PixelReader:
        """What `read` does, without the model; it can be pickled."""


@runtime_checkable
class TextLimited(Protocol):
    """An encoder whose texts may be no longer than some number of tokens."""

    def cut(self, text: str) -> str | None:
        """How many tokens of a text it reads, and where that ends; None for a text that it reads whole."""


@runtime_checkable
class EncoderWithNotes(Protocol):
    """An encoder that leaves notes, which indexing shows when it is over."""

    @property
    def notes(self) -> Sequence[str]:
        """What the user should know of the vectors so far, a sentence each."""


@runtime_checkable
class Composer(Protocol):
    """An encoder that reads a picture and words as one input, as multimodal language models do.

    `Query.composed` then is one input; for all other encoders it is the weighted sum of its two vectors.
    """

    def encode_composed(self, pixels: Pixels, texts: Sequence[str]) -> Vectors:
        """Pictures (n, ...) as `read` gave them with a text each to unit vectors (n, dim)."""


@dataclass(frozen=True)
class Heat:
    """How much each part of a picture adds to the score of a query: a grid of numbers (rows, columns), any sign.

    `box` is the part of the picture that the grid covers: left, top, right, bottom as shares of its width and height.
    A model that pads a picture sees more than it, and the box then reaches beyond 0 and 1.
    """

    values: NDArray[np.float32]
    box: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)


@runtime_checkable
class Localizer(Protocol):
    """An encoder that says where in a picture it sees what a query is about."""

    def heat(self, picture: Image, query: Vectors) -> Heat | None:
        """What each part of an upright RGB picture adds to the score of a query's unit vector (dim,).

        To first order; None for a model whose parts are not known.
        """
