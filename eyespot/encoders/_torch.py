"""What the encoders that run on torch share: two towers on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.encoders._patches import PatchGrid, patch_heat
from eyespot.encoders._pictures import PictureEncoder, in_batches, text_list, try_last_word
from eyespot.encoders._text_caveats import cut_text, joined, of_contrastive
from eyespot.models.torch_models import half, usable
from eyespot.types import EyespotError, Heat, Pixels, Space, Vectors

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


TEXTS_AT_ONCE = 256
IMPROBABLE = 0.001  # a pair's chance, by a sigmoid-trained model's own account


# -- an encoder of two towers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PicklableReader:
    """The preprocessing of two towers, as an `eyespot.types.PixelReader`."""

    read: Callable[[Image], Pixels]
    min_side: int | None


@dataclass(repr=False)
class TorchEncoder(PictureEncoder, ABC):
    """A model's two towers on a device, as an `eyespot.types.Encoder`; a subclass has a family's own rules."""

    model: Any
    device: Device
    licence: str
    batch: int
    tokenizer: Any
    space: Space = field(init=False)
    min_side: int | None = field(default=None, init=False)  # the libraries' vectors come from pictures decoded in full

    @property
    @abstractmethod
    def preprocess(self) -> Callable[[Image], Pixels]:
        """One upright RGB picture through the model's own preprocessing; it can be pickled."""

    @abstractmethod
    def image(self, pixels: torch.Tensor) -> torch.Tensor:
        """(n, ...) as `read` gave them to (n, dim)."""

    @abstractmethod
    def tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """What the text half takes, under the model's own prompt rules: `input_ids` (n, length), and what else."""

    @abstractmethod
    def text(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Tokens (n, length) to (n, dim)."""

    @abstractmethod
    def not_understood(self, text: str) -> str | None:
        """One sentence if the vocabulary or the training does not cover this text."""

    @abstractmethod
    def reach(self, text: str) -> tuple[int, int, str]:
        """Tokens that are read, of how many, and the end of what is read."""

    @abstractmethod
    def patches(self, size: tuple[int, int], pixels: Pixels) -> PatchGrid | None:
        """The patches of a vision transformer for a picture (width, height); None for another kind of tower."""

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture through the model's own preprocessing."""
        return self.preprocess(picture)

    @property
    def reader(self) -> PicklableReader:
        """What `read` does, to be sent to other processes."""
        return PicklableReader(self.preprocess, self.min_side)

    @property
    def on_accelerator(self) -> bool:
        """Whether the processors are free while it embeds."""
        return self.device.torch.type != "cpu"

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """(n, ...) as `read` gave them to unit rows (n, dim)."""
        if len(pixels) == 0:
            return np.zeros((0, self.space.dim), np.float32)
        import torch

        try:
            return self.device.unit_rows(self.image, self.device.send(np.ascontiguousarray(pixels)))
        except torch.OutOfMemoryError as error:
            raise EyespotError(
                f"the card has no memory for a batch of {len(pixels)} pictures; end what else uses it and run the same "
                "line again, or set EYESPOT_DEVICE=cpu"
            ) from error

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """n texts under the model's own prompt rules to unit rows (n, dim)."""

        return in_batches(self.embedded, text_list(texts), TEXTS_AT_ONCE, self.space.dim)

    def embedded(self, texts: list[str], number: int | None = None) -> Vectors:
        """The same of one batch; with a number, of that token in place of all of theirs."""
        tokens = {name: ids.to(self.device.torch) for name, ids in self.tokens(texts).items()}
        if number is not None:
            tokens["input_ids"] = tokens["input_ids"].new_full(tokens["input_ids"].shape, number)
        return self.device.unit_rows(self.text, tokens)

    def check_texts(self) -> None:
        """Embed the last word of the tokenizer; `UsageError` where it and the text half are not of one model."""
        try_last_word(self.space.encoder, vocabulary_of(self.tokenizer), partial(self.embedded, ["a photo"]))

    def heat(self, picture: Image, query: Vectors) -> Heat | None:
        """What each patch adds to the score of a query (dim,); None for a tower that is not a vision transformer."""
        pixels = np.ascontiguousarray(self.read(picture))
        grid = self.patches(picture.size, pixels)
        return None if grid is None else patch_heat(self.image, self.device.send(pixels[None]), grid, query)

    def caveat(self, text: str) -> str | None:
        """One sentence if the model cannot read this text, or what it says is no help to such models."""
        return joined(self.not_understood(text), of_contrastive(self.space.encoder, text), self.cut(text))

    def cut(self, text: str) -> str | None:
        """What is said of a text that is longer than the text half."""
        return cut_text(self.space.encoder, *self.reach(text))

    def tokens_in(self, text: str) -> int:
        """How many tokens the text half reads, without padding."""
        return self.reach(text)[0]

    def weakest_match(self, text: str) -> float | None:
        """The same for every text, by the model's own scale and bias; None for CLIP, which was trained to rank only."""
        scale, bias = getattr(self.model, "logit_scale", None), getattr(self.model, "logit_bias", None)
        return (
            None if scale is None or bias is None else sigmoid_floor(float(scale.detach().exp()), float(bias.detach()))
        )


def sigmoid_floor(scale: float, bias: float) -> float | None:
    """The cosine at which a sigmoid-trained model (SigLIP) gives a pair one chance in a thousand.

    Low on purpose: such a model gives good matches of short queries a few percent only.
    """
    if scale <= 0:
        return None
    floor = (np.log(IMPROBABLE / (1 - IMPROBABLE)) - bias) / scale
    return float(floor) if 0 < floor < 1 else None


def vocabulary_of(tokenizer: Any) -> dict[str, int]:
    """The words of a tokenizer with their numbers; those added later may have no row in the model that it is for."""
    words = getattr(tokenizer, "tokenizer", tokenizer)  # open_clip wraps one of transformers, or has its own
    if not hasattr(words, "get_vocab"):
        return dict(words.encoder)
    return {word: number for word, number in words.get_vocab().items() if word not in words.get_added_vocab()}


# -- the device ---------------------------------------------------------------------------------------------


class Device:
    """Where a model runs: half precision on an accelerator, float32 on a CPU.

    `name` is "auto", "cpu", "cuda", "cuda:1" or "mps"; "auto" follows EYESPOT_DEVICE, then takes the best there is.
    """

    def __init__(self, name: str = "auto") -> None:
        self.torch = usable(name)

    @property
    def batch(self) -> int:
        """How many pictures this device likes at once."""
        return 32 if self.torch.type == "cpu" else 256

    def send(self, array: Pixels) -> torch.Tensor:
        """An array onto this device."""
        import torch

        return torch.from_numpy(array).to(self.torch)

    def unit_rows(self, tower: Callable[[Any], torch.Tensor], inputs: Any) -> Vectors:
        """What the tower gives, in float32 and of unit length, (n, dim)."""
        import torch

        kind = self.torch.type
        precision = nullcontext() if kind == "cpu" else torch.autocast(kind, half(self.torch))
        with torch.inference_mode(), precision:
            rows = tower(inputs)  # (n, dim)
        return np.asarray(torch.nn.functional.normalize(rows.float(), dim=-1).cpu())
