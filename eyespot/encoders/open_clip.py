"""open_clip models: `open_clip:MODEL/PRETRAINED`, where PRETRAINED is a tag, `tag@revision` or a checkpoint file,
or `open_clip:hf-hub:ORG/NAME[@revision]` for a model by its name on the hub (BioCLIP: `hf-hub:imageomics/bioclip`).

Preprocessing and tokenizer are the library's own, so vectors equal its `encode_image` and `encode_text`, made unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.encoders._patches import PatchGrid, centre_crop
from eyespot.encoders._text_caveats import latin_only, mostly_unknown
from eyespot.encoders._torch import Device, TorchEncoder
from eyespot.models import hub
from eyespot.models.downloads import download
from eyespot.types import Pixels, Space, UsageError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

SPELLING = "open_clip:MODEL/PRETRAINED"
NEEDS = "the extra [torch]; weights from the model hub or a file"
HUB = "hf-hub:"
SITE = "https://huggingface.co"
HUB_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "open_clip_pytorch_model.bin")


def load(spec: str, *, device: str = "auto", batch: int | None = None) -> TorchEncoder:
    """An open_clip model as an encoder; further configurations are named to open_clip's `add_model_config` before.

    Raises: UsageError for an unknown model or tag, EyespotError if the weights cannot be had or do not fit.
    """
    with hub.loading(f"open_clip:{spec}"):
        where = Device(device)
        if spec.startswith(HUB):
            source = _on_hub(spec)
        else:
            model, _, pretrained = spec.partition("/")
            import open_clip

            known = open_clip.list_models()
            if model not in known:
                near = get_close_matches(model, known, n=5, cutoff=0.3)
                raise UsageError(f"open_clip has no model {model!r}; the nearest are: {', '.join(near or known[:5])}")
            file = Path(pretrained).expanduser()
            if file.is_file():
                checkpoint = hub.Checkpoint(file.parent, [file], "")
                source = OpenClipSource(f"open_clip:{model}/{file.resolve()}", model, checkpoint, model)
            else:
                source = _tagged(model, pretrained)
        return OpenClip.create(source, where, batch)


@dataclass(frozen=True)
class OpenClipSource:
    """Where a model comes from, in the terms of open_clip's own functions."""

    name: str  # that loads it again, with the room's prefix
    architecture: str  # a model's name, or "local-dir:FOLDER"
    checkpoint: hub.Checkpoint
    tokenizer: str
    settings: dict[str, Any] = field(default_factory=dict)
    licence: str = "unknown; see where the checkpoint came from"


@dataclass(repr=False)
class OpenClip(TorchEncoder):
    """An open_clip model with its transform and tokenizer."""

    transform: Any

    @classmethod
    def create(cls, source: OpenClipSource, device: Device, batch: int | None) -> OpenClip:
        """The model with its weights on the device."""
        import open_clip

        in_folder = source.architecture.startswith("local-dir:")
        model = open_clip.create_model(
            source.architecture,
            pretrained=None if in_folder else str(source.checkpoint.weights[0]),
            require_pretrained=True,
            weights_only=True,
            **source.settings,
        )
        return cls.ready(source, model, device, batch)

    @classmethod
    def ready(cls, source: OpenClipSource, model: Any, device: Device, batch: int | None) -> OpenClip:
        """A model that has its weights, with the transform and tokenizer that belong to it."""
        import open_clip
        from open_clip.transform import PreprocessCfg, image_transform_v2

        transform = image_transform_v2(PreprocessCfg(**model.visual.preprocess_cfg), is_train=False)
        model, tokenizer = model.to(device.torch).eval(), open_clip.get_tokenizer(source.tokenizer)
        made = cls(model, device, source.licence, batch or device.batch, tokenizer, transform)
        # The transform's settings and the tokenizer's
        words = {"tokenizer": type(tokenizer).__name__, "length": tokenizer.context_length}
        words["clean"] = getattr(tokenizer.clean_fn, "__name__", "")
        read = json.dumps({"image": model.visual.preprocess_cfg, "text": words}, sort_keys=True)
        weights, dim = (
            hub.digest(source.checkpoint.weights),
            open_clip.get_model_config(source.architecture)["embed_dim"],
        )
        made.space = Space(source.name, source.checkpoint.revision, weights, read, dim)
        return made

    @property
    def preprocess(self) -> Callable[[Image], Pixels]:
        """A picture through the model's own transform, (3, height, width) float32."""
        return partial(_transformed, self.transform)

    def image(self, pixels: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.model.encode_image(pixels)
        return rows

    def tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """Cleaned, lower-cased and padded as the model's own tokenizer does it, (n, context length)."""
        return {"input_ids": self.tokenizer(texts)}

    def text(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        rows: torch.Tensor = self.model.encode_text(tokens["input_ids"])
        return rows

    def patches(self, size: tuple[int, int], pixels: Pixels) -> PatchGrid | None:
        """The patches of open_clip's own vision transformers and of timm's; None for a convolutional tower."""
        visual = self.model.visual
        trunk: Any = getattr(visual, "trunk", None)
        if hasattr(visual, "transformer") and hasattr(visual, "grid_size"):
            block, prefix, grid = visual.transformer.resblocks[-1], 1, visual.grid_size
        elif hasattr(trunk, "blocks") and hasattr(getattr(trunk, "patch_embed", None), "grid_size"):
            block, prefix, grid = trunk.blocks[-1], int(trunk.num_prefix_tokens), trunk.patch_embed.grid_size
        else:
            return None
        settings, (height, width) = visual.preprocess_cfg, pixels.shape[-2:]
        if settings.get("resize_mode") == "squash":
            return PatchGrid(block, prefix, grid[0], grid[1])
        edge = max(size) if settings.get("resize_mode") == "longest" else min(size)
        return PatchGrid(block, prefix, grid[0], grid[1], centre_crop(size, width / edge, (width, height)))

    def not_understood(self, text: str) -> str | None:
        """CLIP's own byte vocabulary means English captions; other vocabularies are asked what they know."""
        vocabulary = getattr(self.tokenizer, "tokenizer", None)
        if vocabulary is None:
            return latin_only(self.space.encoder, text)
        ids = vocabulary(text, add_special_tokens=False).input_ids
        return mostly_unknown(self.space.encoder, ids, vocabulary.unk_token_id)

    def reach(self, text: str) -> tuple[int, int, str]:
        """Of the tokens of the cleaned text, with those that every text begins and ends with."""
        longest, vocabulary = int(self.tokenizer.context_length), getattr(self.tokenizer, "tokenizer", None)
        if vocabulary is None:
            ids = [0, *self.tokenizer.encode(text), 0]
        else:
            ids = vocabulary(getattr(self.tokenizer, "clean_fn", str)(text)).input_ids
        return min(len(ids), longest), len(ids), (vocabulary or self.tokenizer).decode(ids[1 : longest - 1])


def _transformed(transform: Any, picture: Image) -> Pixels:
    return np.asarray(transform(picture))


def _on_hub(spec: str) -> OpenClipSource:
    repo, _, revision = spec.removeprefix(HUB).partition("@")
    checkpoint = hub.fetch(repo, revision or None, HUB_WEIGHTS)
    folder = f"local-dir:{checkpoint.folder}"
    # Whether the folder alone gives the tokenizer: its files are there, or it is CLIP's, which the library has
    config = json.loads((checkpoint.folder / "open_clip_config.json").read_text("utf-8"))
    vocabulary = config.get("model_cfg", config).get("text_cfg", {}).get("hf_tokenizer_name")
    brings_tokenizer = not vocabulary or (checkpoint.folder / "tokenizer_config.json").is_file()
    tokenizer = folder if brings_tokenizer else HUB + repo
    return OpenClipSource(f"open_clip:{spec}", folder, checkpoint, tokenizer, licence=f"see {SITE}/{repo}")


def _tagged(model: str, pretrained: str) -> OpenClipSource:
    """A tag's weights, in the revision asked for; its activation is forced, since open_clip 3 only warns of it."""
    from open_clip import pretrained as tags

    tag, _, revision = pretrained.partition("@")
    config = tags.get_pretrained_cfg(model, tag)
    if not config:
        known = tags.list_pretrained_tags_by_model(model)
        if not known:
            raise UsageError(f"{model} has no published weights; name a checkpoint file: open_clip:{model}/FILE")
        raise UsageError(f"{model} has no weights {tag!r} and no file is called so; there are: {', '.join(known)}")
    checkpoint = _tag_files(config, revision or None)
    place = f"{SITE}/{config['hf_hub'].rpartition('/')[0]}" if config.get("hf_hub") else config["url"]
    keys = ("mean", "std", "interpolation", "resize_mode", "fill_color")
    preprocess = {key: config[key] for key in keys if key in config}
    tag_settings = {"force_preprocess_cfg": preprocess, "force_quick_gelu": bool(config.get("quick_gelu"))}
    name = f"open_clip:{model}/{pretrained}"
    return OpenClipSource(name, model, checkpoint, model, tag_settings, f"see {place}")


def _tag_files(config: dict[str, Any], revision: str | None) -> hub.Checkpoint:
    repo, _, file = config.get("hf_hub", "").rpartition("/")
    if not repo:
        promised = re.search("/([0-9a-f]{64})/", config["url"])  # as OpenAI's addresses do
        cache = Path("~/.cache/clip").expanduser()  # open_clip's own
        weights = download(config["url"], cache, sha256=promised[1] if promised else None).place
        return hub.Checkpoint(weights.parent, [weights], "")
    safe = Path(file).with_suffix(".safetensors").name if file else ""
    return hub.fetch(repo, revision, (safe, file) if file else HUB_WEIGHTS)
