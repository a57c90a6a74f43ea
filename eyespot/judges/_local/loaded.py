"""Models of the transformers library from their files, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.judges._local.settings import LocalSettings
from eyespot.types import EyespotError


def model_of(kind: Any, folder: Path, settings: LocalSettings) -> Any:
    """A model of this class, or of the class that an auto class finds, on its device, ready to be asked.

    Raises EyespotError where weights are missing: the library would start them at random and only warn.
    """
    from transformers.utils import logging

    silence: Any = logging.disable_progress_bar  # a bar for every load would soil the command line
    silence()
    model, notes = kind.from_pretrained(
        folder, local_files_only=True, dtype=settings.torch_dtype, output_loading_info=True
    )
    if notes["missing_keys"]:
        lacks = sorted(notes["missing_keys"])[0]
        raise EyespotError(f"{folder.name} lacks weights, {lacks} for one; fetch the model again")
    return model.to(settings.torch_device).eval()


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
