"""A model whose weights were changed, written down so that its library, and so eyespot, loads it again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from eyespot import rooms
from eyespot.encoders._installing import probe
from eyespot.encoders._torch import TorchEncoder
from eyespot.encoders.hf import Transformer
from eyespot.models import hub
from eyespot.types import UsageError

WEIGHTS = "open_clip_model.safetensors"
SLACK = 1e-4  # by which components of unit vectors may differ and still be the same


def trainable(encoder: Any) -> TorchEncoder:
    """The encoder, if its weights can be changed and written; `UsageError` if not."""
    name = encoder.space.encoder
    if name.startswith("open_clip:hf-hub:"):  # its configuration lies on the hub, and a file of weights names none
        raise UsageError(f"{name} is trained under its model's name, as in open_clip:ViT-B-16/FILE; save its weights")
    if name.startswith(("hf:", "open_clip:")) and isinstance(encoder, TorchEncoder):
        return encoder
    raise UsageError(f"{name} cannot be trained; index with an hf: or open_clip: model and name it by -e")


def save(encoder: TorchEncoder, folder: Path) -> str:
    """Write a model into a folder that is there; gives the name that loads it from there."""
    if isinstance(encoder, Transformer):
        with hub.quiet():
            for part in (encoder.model, encoder.processor, encoder.tokenizer):
                part.save_pretrained(folder)
    else:
        from safetensors.torch import save_file

        weights = {
            name: value.detach().cpu().contiguous().clone() for name, value in encoder.model.state_dict().items()
        }
        save_file(weights, folder / WEIGHTS)
    return name_in(encoder, folder)


def name_in(encoder: TorchEncoder, folder: Path) -> str:
    """The name under which a model is loaded from the folder that it was written to."""
    if isinstance(encoder, Transformer):
        return f"hf:{folder.absolute()}"
    model = encoder.space.encoder.removeprefix("open_clip:").partition("/")[0]
    return f"open_clip:{model}/{folder.absolute() / WEIGHTS}"


def refuse_if_lost(encoder: TorchEncoder) -> None:
    """`UsageError` if the model would not be the same when it is loaded again.

    An open_clip tag may bring an activation and a preprocessing of its own, which a file of weights does not name.
    """
    with tempfile.TemporaryDirectory() as place:
        again = rooms.load("encoders", save(encoder, Path(place)), device=str(encoder.device.torch))
        alike = np.allclose(probe(encoder), probe(again), atol=SLACK)
    if not alike:
        raise UsageError(
            f"{encoder.space.encoder} has settings that a file of weights does not keep; take the same model as hf:, "
            "or of open_clip one that names them, such as ViT-B-32-quickgelu"
        )
