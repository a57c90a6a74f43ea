"""Models in torch: where one runs and in which precision, and its weights from files, whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, is_zipfile

from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    import torch


def usable(name: str = "auto") -> torch.device:
    """The device of that name: "auto", "cpu", "cuda", "cuda:1" or "mps"; "auto" follows EYESPOT_DEVICE, then takes the
    best there is. `UsageError` names those that are here."""
    import torch

    accelerators = (("cuda", torch.cuda), ("mps", torch.backends.mps))
    present = [*(kind for kind, module in accelerators if module.is_available()), "cpu"]
    setting = os.environ.get("EYESPOT_DEVICE", "auto") if name == "auto" else name
    chosen = present[0] if setting == "auto" else setting
    if chosen.partition(":")[0] not in present:
        raise UsageError(f"no device {chosen!r} here; there are: {', '.join(present)}")
    return torch.device(chosen)


def card_in_use() -> torch.device | None:
    """The CUDA card to compute on, if something has loaded torch already or EYESPOT_DEVICE names one; torch is not
    loaded in order to look."""
    if "torch" not in sys.modules and not os.environ.get("EYESPOT_DEVICE", "").startswith("cuda"):
        return None
    device = usable()
    return device if device.type == "cuda" else None


def free_on(card: torch.device) -> int:
    """Bytes that a CUDA card has free, with those that torch holds and does not use."""
    import torch

    held = torch.cuda.memory_reserved(card) - torch.cuda.memory_allocated(card)
    return int(torch.cuda.mem_get_info(card)[0] + held)


def half(device: torch.device) -> torch.dtype:
    """The 16-bit numbers that an accelerator computes with: bfloat16 where it has them, else float16."""
    import torch

    has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if has_bf16 else torch.float16


# -- weights ----------------------------------------------------------------------------------------------------


def model_of(kind: Any, folder: Path, dtype: torch.dtype, name: str = "") -> Any:
    """A model of this class, or of the class that an auto class finds; in errors it bears `name`, or the folder's.

    Raises EyespotError where weights are missing: the library would start them at random and only warn.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # a bar for every load would soil the command line
    model, notes = kind.from_pretrained(folder, local_files_only=True, dtype=dtype, output_loading_info=True)
    if notes["missing_keys"]:
        lacks = sorted(notes["missing_keys"])[0]
        raise EyespotError(f"{name or folder.name} lacks weights, {lacks} for one; fetch the model again")
    return model


def processor_of(folder: Path) -> Any:
    """The model's own processor."""
    from transformers import AutoProcessor

    auto: Any = AutoProcessor
    return auto.from_pretrained(folder, local_files_only=True)


def on_device(inputs: Any, model: Any) -> dict[str, Any]:
    """What a processor gave, where the model is, in the model's precision."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
    }


def tensors_in(path: Path, device: Any = "cpu") -> Any:
    """What torch reads of a file that holds no code and is not packed; it raises nearly anything."""
    import torch

    if is_zipfile(path):
        with ZipFile(path) as members:
            if sum(one.file_size for one in members.infolist()) > path.stat().st_size:
                raise ValueError("it unfolds to more than its size")
    return torch.load(path, map_location=device, weights_only=True)
