"""DINOv2's patches as local features: `dinov2:ORG/NAME[@REVISION]` or `dinov2:FOLDER`, through transformers.

The patches that the class token attends to most (mean over the heads of the last layer) come first. Oquab et al.,
DINOv2: Learning robust visual features without supervision (TMLR 2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.encoders import Device
from eyespot.models import hub
from eyespot.types import LocalFeatures, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

SPELLING = "dinov2:ORG/NAME[@REVISION] or dinov2:FOLDER"
NEEDS = "the extra [torch]; weights from the model hub or a folder"
DEFAULT = "facebook/dinov2-base"
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
FAMILY = ("dinov2", "dinov2_with_registers")


def load(spec: str = DEFAULT, *, device: str = "auto") -> Dinov2:
    """A DINOv2 model, with or without registers.

    Raises `UsageError` if the model is of another kind, `EyespotError` if it cannot be had or its files are not whole.
    """
    with hub.loading(f"dinov2:{spec}"):
        where = Device(device)
        checkpoint, name = hub.checkpoint_of("dinov2", spec, WEIGHTS)
        return Dinov2.create(name, checkpoint, where)


@dataclass(frozen=True)
class Dinov2:
    """The patches of one picture at a time, so that every picture keeps its shape."""

    name: str
    settings: Mapping[str, str | int | float]
    min_side: int | None
    model: Any
    processor: Any
    device: Device

    @classmethod
    def create(cls, name: str, checkpoint: hub.Checkpoint, device: Device) -> Dinov2:
        """The model of a folder on the device."""
        from transformers import AutoImageProcessor, AutoModel

        # Only this implementation tells its attention.
        options: dict[str, Any] = {"local_files_only": True, "attn_implementation": "eager"}
        model: Any = AutoModel
        model = model.from_pretrained(checkpoint.folder, **options)
        if model.config.model_type not in FAMILY:
            raise UsageError(f"{name} is a {type(model).__name__}; choose a DINOv2 model, such as dinov2:{DEFAULT}")
        processor: Any = AutoImageProcessor
        processor = processor.from_pretrained(checkpoint.folder, local_files_only=True)
        side = int(model.config.image_size)
        weights = hub.digest(checkpoint.weights)
        settings: dict[str, str | int | float] = {"weights": weights, "revision": checkpoint.revision, "side": side}
        return cls(name, settings, side, model.float().to(device.torch).eval(), processor, device)

    def describe(self, picture: Image, count: int) -> LocalFeatures:
        """At most `count` patches: (n, dim) float16 of unit length, and the patches' centres (n, 2)."""
        import torch
        from PIL import Image as pil

        # The picture at the model's own side, in its shape to the nearest patch, normalised
        patch = int(self.model.config.patch_size)
        scale = int(self.settings["side"]) / max(picture.size) / patch
        width, height = (max(1, round(side * scale)) * patch for side in picture.size)
        resized = np.asarray(picture.resize((width, height), pil.Resampling.BICUBIC), np.float32) / 255
        mean, std = (np.array(values, np.float32) for values in (self.processor.image_mean, self.processor.image_std))
        pixels = np.ascontiguousarray(((resized - mean) / std).transpose(2, 0, 1)[None])  # (1, 3, height, width)
        with torch.inference_mode():
            seen = self.model(self.device.send(pixels), output_attentions=True)
        first = 1 + int(getattr(self.model.config, "num_register_tokens", 0))  # behind the class token and registers
        attention = seen.attentions[-1][0, :, 0, first:].mean(0).cpu().numpy()  # (patches,)
        chosen = np.argsort(-attention, kind="stable")[:count]
        patches = torch.nn.functional.normalize(seen.last_hidden_state[0, first:], dim=-1).cpu().numpy()
        across = width // patch  # patches are numbered row by row
        centres = (np.stack([chosen % across, chosen // across], axis=1) + 0.5) * patch  # (n, 2), x and y
        return LocalFeatures(patches[chosen].astype(np.float16), centres.astype(np.float32))
