"""Models of the transformers library: `hf:ORG/NAME[@revision]` or `hf:FOLDER`; CLIP, SigLIP, SigLIP 2 and their kin.

Preprocessing is the model's own; so are the prompt rules: SigLIP was trained on lower-cased texts padded to 64.
`#long=384` behind the name fits a picture's longer side and interpolates positions, as ILIAS's extractor does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.encoders._patches import PatchGrid, centre_crop
from eyespot.encoders._text_caveats import latin_only, mostly_unknown
from eyespot.encoders._torch import Device, TorchEncoder
from eyespot.models import hub
from eyespot.models.torch_models import model_of
from eyespot.types import Pixels, Space, UsageError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

SPELLING = "hf:ORG/NAME[@REVISION][#long=SIDE] or hf:FOLDER[#long=SIDE]"
NEEDS = "the extra [torch]; weights from the model hub or a folder"
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
SIGLIP = ("siglip", "siglip2")
SIGLIP_LENGTH = 64


def load(spec: str, *, device: str = "auto", batch: int | None = None) -> TorchEncoder:
    """A transformers model with an image and a text half as an encoder; code that a repository brings is not run.

    Raises: UsageError if the model is of another kind, EyespotError if it cannot be had or its files are not whole.
    """
    with hub.loading(f"hf:{spec}"):
        where = Device(device)
        spec, mark, side = spec.partition("#long=")
        checkpoint, name = hub.checkpoint_of("hf", spec, WEIGHTS)
        name += mark + side
        model, processor, tokenizer = _opened(name, checkpoint.folder, where)
        encoder = Transformer(model, where, licence_of(spec), batch or where.batch, tokenizer, processor)
        if mark and (encoder.patch is None or not side.isdecimal() or int(side) < encoder.patch):
            raise UsageError(f"{mark}{side} needs a vision transformer, and a side of one patch or more, not {name}")
        encoder.long = int(side) if mark else None
        weights, read = hub.digest(checkpoint.weights), _preprocessing(encoder, checkpoint.folder)
        # What the text half gives is as wide as the space
        encoder.space = Space(name, checkpoint.revision, weights, read, encoder.embedded(["a"]).shape[1])
        return encoder


def _opened(name: str, folder: Path, device: Device) -> tuple[Any, Any, Any]:
    """The model of a folder on the device, its image processor and its tokenizer."""
    import torch
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    model = model_of(AutoModel, folder, torch.float32, name)
    if not hasattr(model, "get_image_features") or not hasattr(model, "get_text_features"):
        raise UsageError(f"{name} is a {type(model).__name__}, which has no text half; choose a CLIP or SigLIP model")
    processor: Any = AutoImageProcessor
    processor = processor.from_pretrained(folder, local_files_only=True)
    if hasattr(processor, "max_num_patches"):
        raise UsageError(f"{name} is a NaFlex model; take one of a fixed size: hf:google/siglip2-base-patch16-512")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return model.to(device.torch).eval(), processor, tokenizer


@dataclass(repr=False)
class Transformer(TorchEncoder):
    """A transformers model with its image processor and tokenizer."""

    processor: Any
    long: int | None = None  # pixels that the longer side is fitted to

    @property
    def is_siglip(self) -> bool:
        """Whether SigLIP's prompt rules apply."""
        return self.model.config.model_type in SIGLIP

    @property
    def length(self) -> int:
        """The longest text in tokens."""
        longest = int(self.model.config.text_config.max_position_embeddings)
        return min(SIGLIP_LENGTH, longest) if self.is_siglip else longest

    @property
    def preprocess(self) -> Callable[[Image], Pixels]:
        """A picture through the model's own processor, (3, height, width)."""
        if self.long and self.patch:
            return partial(_fitted, self.long, self.patch, self.processor.image_mean, self.processor.image_std)
        return partial(_processed, self.processor)

    @property
    def patch(self) -> int | None:
        """The side of a patch in pixels; None for a tower without patches."""
        side = getattr(self.model.config.vision_config, "patch_size", None)
        return side if isinstance(side, int) else None

    def image(self, pixels: torch.Tensor) -> torch.Tensor:
        if self.long:
            import torch

            there = ~pixels[:, 0].isnan()  # (n, side, side)
            cut = [one[:, mask.any(1)][..., mask.any(0)] for one, mask in zip(pixels, there, strict=True)]
            interpolated: Any = partial(self.model.get_image_features, interpolate_pos_encoding=True)
            return torch.cat([_rows(interpolated(pixel_values=one[None])) for one in cut])
        return _rows(self.model.get_image_features(pixel_values=pixels))

    def tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """Token numbers, (n, length), and what else the model's tokenizer hands its model.

        SigLIP was trained without a mask and padded on the right, whatever its tokenizer does by itself.
        """
        padding, more = "longest", {}
        if self.is_siglip:
            texts, padding = [text.lower() for text in texts], "max_length"
            more = {"padding_side": "right", "return_attention_mask": False}
        limits = {"padding": padding, "truncation": True, "max_length": self.length}
        return dict(self.tokenizer(texts, return_tensors="pt", **limits, **more))

    def text(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return _rows(self.model.get_text_features(**tokens))

    def patches(self, size: tuple[int, int], pixels: Pixels) -> PatchGrid | None:
        tower = getattr(self.model, "vision_model", None)
        layers = getattr(getattr(tower, "encoder", None), "layers", None)
        if layers is None or self.patch is None or self.long:
            return None
        height, width = pixels.shape[-2:]
        grid = PatchGrid(layers[-1], 0 if self.is_siglip else 1, height // self.patch, width // self.patch)
        edge = getattr(self.processor, "size", {}).get("shortest_edge")
        if not edge or not getattr(self.processor, "do_center_crop", False):
            return grid
        return replace(grid, box=centre_crop(size, edge / min(size), (width, height)))

    def not_understood(self, text: str) -> str | None:
        """CLIP was trained on English captions; other vocabularies are asked what they know."""
        if self.model.config.model_type == "clip":
            return latin_only(self.space.encoder, text)
        return mostly_unknown(self.space.encoder, self.tokenizer(text).input_ids, self.tokenizer.unk_token_id)

    def reach(self, text: str) -> tuple[int, int, str]:
        """Of the tokens that the model's tokenizer makes without a limit."""
        ids = self.tokenizer(text, truncation=True, max_length=self.length).input_ids
        total = len(self.tokenizer(text, verbose=False).input_ids)
        return len(ids), total, self.tokenizer.decode(ids, skip_special_tokens=True)


def _processed(processor: Any, picture: Image) -> Pixels:
    return np.asarray(processor(images=picture, return_tensors="pt")["pixel_values"][0])


def _fitted(long: int, patch: int, mean: Sequence[float], std: Sequence[float], picture: Image) -> Pixels:
    """A picture whose longer side is `long`, with grey around it to whole patches; what is left of a square is NaN."""
    ratio = picture.size[1] / picture.size[0]  # height to width
    sides = (long, max(1, int(long * ratio))) if ratio <= 1 else (max(1, int(long / ratio)), long)
    shown = (np.asarray(picture.resize(sides), np.float32) / 255 - mean) / std  # (rows, columns, 3)
    around = [(-edge % patch // 2, -edge % patch - -edge % patch // 2) for edge in shown.shape[:2]]
    shown = np.pad(shown, [*around, (0, 0)])
    made = np.full((3, *2 * (math.ceil(long / patch) * patch,)), np.nan, np.float32)
    made[:, : shown.shape[0], : shown.shape[1]] = shown.transpose(2, 0, 1)
    return made


def _rows(features: Any) -> torch.Tensor:
    # transformers 5 gives an output object whose pooler_output is projected already; 4 gave the tensor
    rows: torch.Tensor = getattr(features, "pooler_output", features)
    return rows


def _preprocessing(encoder: Transformer, folder: Path) -> str:
    """The processor's class and settings and the tokenizer's files, as JSON; the two kinds of processor (PIL's and
    torchvision's) resize a little differently, so the class counts."""
    settings = encoder.processor.to_dict()
    image = {key: settings[key] for key in sorted(settings) if not key.startswith("_")}
    image |= {"longer_side": encoder.long} if encoder.long else {}
    names = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "merges.txt")
    vocabulary = [folder / name for name in names if (folder / name).is_file()]
    words = {"files": hub.digest(vocabulary), "length": encoder.length, "lower": encoder.is_siglip}
    if encoder.is_siglip and "attention_mask" in encoder.tokenizer.model_input_names:
        words["mask"] = False  # which such a tokenizer would hand out
    kind = type(encoder.processor).__name__
    return json.dumps({"processor": kind, "image": image, "text": words}, sort_keys=True, default=str)


def licence_of(spec: str) -> str:
    """Where the licence of a model stands."""
    if Path(spec).expanduser().is_dir():
        return "unknown; see where the folder came from"
    return f"see https://huggingface.co/{spec.partition('@')[0]}"
