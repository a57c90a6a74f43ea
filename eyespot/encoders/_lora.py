"""Adapters of low rank (LoRA, and DoRA's lengths) added into a model's weights, from the files that PEFT writes.

W becomes W + s·B·A, with s = alpha / r (or alpha / √r where the file says so); DoRA then gives each row of the sum the
length that was trained for it. (Hu et al. 2022; Liu et al. 2024.)
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.types import EyespotError

if TYPE_CHECKING:
    import torch

SETTINGS = "adapter_config.json"
WEIGHTS = "adapter_model*.safetensors"
PARTS = {"lora_A.weight": "a", "lora_B.weight": "b", "lora_magnitude_vector": "m", "lora_magnitude_vector.weight": "m"}
MOVED = {"model.layers.": "model.language_model.layers.", "visual.": "model.visual."}  # before → since version 4.52
REFUSED = ("fan_in_fan_out", "rank_pattern", "alpha_pattern", "modules_to_save", "lora_bias")


def settings_of(folder: Path) -> Mapping[str, Any] | None:
    """What an adapter's folder says of it, None if the folder holds a whole model; `EyespotError` for another kind."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    config: dict[str, Any] = json.loads(path.read_text("utf-8"))
    strange = next((name for name in REFUSED if config.get(name)), None)
    if config.get("peft_type") != "LORA" or strange or not config.get("base_model_name_or_path"):
        why = f"sets {strange}" if strange else f"is {config.get('peft_type')!r}, or names no base model"
        raise EyespotError(f"the adapter in {folder} {why}; merge it into its base model and name that folder")
    return config


def merge(network: Any, folder: Path, config: Mapping[str, Any]) -> None:
    """Add an adapter into the weights of its base model; `EyespotError` if it is of another model."""
    import torch

    layers = dict(network.named_modules())
    with torch.no_grad():
        for path, parts in _parts(folder).items():
            # Newer versions of the library put further names in front of the same layers
            moved = (path.replace(old, new, 1) for old, new in MOVED.items() if path.startswith(old))
            found = next((name for name in (path, *moved) if name in layers), None)
            if found is None:
                raise EyespotError(
                    f"the adapter changes {path}, which its base model does not have; name the right base model"
                )
            weight = layers[found].weight
            a, b = (parts[name].to(weight.device) for name in ("a", "b"))
            scale = config["lora_alpha"] / (len(a) ** 0.5 if config.get("use_rslora") else len(a))
            whole = weight.float() + scale * (b @ a)  # (out, in)
            if "m" in parts:
                whole = whole * (parts["m"].to(weight.device) / whole.norm(dim=1))[:, None]
            weight.copy_(whole.to(weight.dtype))


def _parts(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """{layer: {"a": (r, in), "b": (out, r), "m": (out,)}}, the layers as the adapter names them."""
    from safetensors.torch import load_file

    found: dict[str, dict[str, torch.Tensor]] = defaultdict(dict)
    for file in sorted(folder.glob(WEIGHTS)):
        for key, value in load_file(file).items():
            path, part = next(
                ((key.removesuffix(f".{end}"), PARTS[end]) for end in PARTS if key.endswith(end)), ("", "")
            )
            if not part:
                raise EyespotError(
                    f"{file} holds {key}, which is not part of a LoRA; merge it into its base model first"
                )
            found[path.removeprefix("base_model.model.")][part] = value.float()
    return found
