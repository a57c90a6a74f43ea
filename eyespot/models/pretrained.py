"""Models of the transformers library, and tensors that torch stored, from their files: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, is_zipfile

from eyespot.types import EyespotError

if TYPE_CHECKING:
    import torch


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
