"""How a local judge is run: the options that `load` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.judges._prompt import PLAIN, JudgePrompt
from eyespot.models import device as devices
from eyespot.types import UsageError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    Reader: TypeAlias = Callable[[Path], Image]

MOST_PIXELS = 150_000_000
OPTIONS = {"device": str, "dtype": str, "batch": int}  # what a user may say of such a judge
NUMBERS = ("float32", "bfloat16", "float16")


def upright(path: Path) -> Image:
    """A picture file in full, upright, in RGB; raises whatever its decoder does, ValueError for one too large."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"over the limit of {MOST_PIXELS // 1_000_000} megapixels")
        return ImageOps.exif_transpose(image).convert("RGB")


@dataclass(frozen=True)
class LocalSettings:
    """Where and how a local model runs.

    `dtype` is "auto" (float32 on a CPU, 16 bits on an accelerator), "float32", "bfloat16" or "float16"; weights of
    8 or 4 bits are not offered. `batch` is how many pairs are judged at once (None: what the device likes); where
    the memory does not hold them, fewer. `read` decodes a file, upright, in RGB.
    """

    wording: JudgePrompt = PLAIN
    device: str = "auto"
    dtype: str = "auto"
    batch: int | None = None
    read: Reader = upright

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise UsageError(f"a batch of {self.batch} judges nothing; give 1 or more")
        if self.dtype not in ("auto", *NUMBERS):
            raise UsageError(f"no dtype {self.dtype!r} (none of 8 or 4 bits); there are: auto, {', '.join(NUMBERS)}")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LocalSettings:
        """Settings from what `load` was given; None is the default.

        A budget is for judges whose requests leave the machine, and is not needed here. Raises UsageError, with what
        there is, for another option and for a device that is not here.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in (*known, "budget"):
                raise UsageError(f"a local judge has no option {name!r}; there are: {', '.join(known)}")
        made = cls(**{name: options[name] for name in known if options.get(name) is not None})
        devices.usable(made.device)
        return made

    @cached_property
    def torch_device(self) -> torch.device:
        """The device; `UsageError` if it is not here."""
        return devices.usable(self.device)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The numbers that the weights are held in."""
        import torch

        if self.dtype != "auto":
            named: torch.dtype = getattr(torch, self.dtype)
            return named
        return torch.float32 if self.torch_device.type == "cpu" else devices.half(self.torch_device)

    @property
    def pairs_at_once(self) -> int:
        """The batch to begin with."""
        return self.batch or (4 if self.torch_device.type == "cpu" else 16)
