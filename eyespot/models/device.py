"""Where a model runs, and in which precision."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from eyespot.types import UsageError

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
