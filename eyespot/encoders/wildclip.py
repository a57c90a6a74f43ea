"""WildCLIP and other fine-tuned OpenAI CLIPs: `wildclip:FILE.pth`, a state dict over ViT-B/16 with QuickGELU.

Gabeff et al., "WildCLIP: Scene and animal attribute retrieval from camera trap data with domain-adapted
vision-language models", IJCV 2024. Its checkpoints are Lightning's: `state_dict`, keys under `model.clip_model.`, and
a CLIP-Adapter that counts only where its `alpha` is not 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.encoders._torch import Device, TorchEncoder
from eyespot.encoders.open_clip import OpenClip, OpenClipSource
from eyespot.models import hub
from eyespot.models.torch_models import tensors_in
from eyespot.types import EyespotError, UsageError

SPELLING = "wildclip:FILE.pth"
NEEDS = "the extra [torch]; the checkpoint as a file"
PREFIXES = ("module.", "_orig_mod.", "model.", "clip_model.")
RECORDS = {"input_resolution", "context_length", "vocab_size"}  # numbers that OpenAI's archives keep beside weights


def load(
    path: str, *, device: str = "auto", batch: int | None = None, architecture: str = "ViT-B-16-quickgelu"
) -> TorchEncoder:
    """A state dict file as an encoder; `architecture` is open_clip's name for the model that was fine-tuned.

    Raises: EyespotError if the file is missing, holds code, or does not hold exactly this model's weights.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"no checkpoint {str(file)!r}; name the .pth file, as in wildclip:models/wildclip_t1.pth")
    with hub.loading(f"wildclip:{path}"):
        where = Device(device)
        import open_clip

        if architecture not in open_clip.list_models():
            raise UsageError(f"open_clip has no architecture {architecture!r}; WildCLIP's is ViT-B-16-quickgelu")
        model = open_clip.create_model(architecture)
        missing, unexpected = model.load_state_dict(_weights(file), strict=False)
        faults = [
            f"{kind} {', '.join(keys[:3])}" + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
            for kind, keys in (("lacks", missing), ("has unknown", unexpected))
            if keys
        ]
        if faults:
            raise EyespotError(f"{file} does not fit this architecture: it {' and '.join(faults)}; name another one")
        checkpoint = hub.Checkpoint(file.parent, [file], "")
        source = OpenClipSource(f"wildclip:{file.resolve()}", architecture, checkpoint, architecture, licence=_LICENCE)
        return OpenClip.ready(source, model, where, batch)


_LICENCE = "see the checkpoint's source; WildCLIP's are at https://zenodo.org/records/10479317"


def _weights(file: Path) -> dict[str, Any]:
    """The CLIP weights of a checkpoint under open_clip's own names."""
    stored = tensors_in(file)
    state = {_bare(key): value for key, value in stored.get("state_dict", stored).items()}
    alpha = float(state.get("adapter.alpha", 0.0))
    if alpha != 0:
        raise EyespotError(
            f"{file} mixes in a CLIP-Adapter (alpha {alpha:g}), which eyespot does not run; "
            "use the checkpoint trained without it"
        )
    return {key: value for key, value in state.items() if key not in RECORDS and not key.startswith("adapter.")}


def _bare(key: str) -> str:
    prefix = next((prefix for prefix in PREFIXES if key.startswith(prefix)), None)
    return key if prefix is None else _bare(key.removeprefix(prefix))
