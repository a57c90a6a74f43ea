"""QuARI checkpoints on disk: the released layout (`config.yml`, `weights.pt`) and ours (`weights.safetensors`).

A `weights.pt` is a pickle: it is read by torch with `weights_only=True`, which admits tensors and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.quari.card import AdapterCard
from eyespot.adapters.quari.config import Config
from eyespot.models import hub
from eyespot.models.torch_models import tensors_in
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.text_files import SMALL, text_of
from eyespot.types import UsageError

CONFIG, OURS, RELEASED = "config.yml", "weights.safetensors", "weights.pt"
Weights: TypeAlias = Mapping[str, NDArray[np.float32]]
LARGEST = 1e15  # of weights: the square of a sum of them is still a number of 32 bits
NOT_FINITE = "holds values that are not numbers below 1e15; copy it again, or train it again with a lower --rate"
_COPY_BOTH = "copy the weights and config.yml of one checkpoint"


def read(place: Path | str) -> tuple[Config, dict[str, NDArray[np.float32]]]:
    """A checkpoint's folder, or `hub:OWNER/NAME`; `UsageError` if it is none, or its weights do not fit its config."""
    folder = folder_of(place)
    config = Config.of(_read_yaml(folder / CONFIG))
    weights = safe_arrays(folder / OURS)[0] if (folder / OURS).is_file() else _released(folder / RELEASED)
    wanted = shapes(replace(config, num_layers=min(config.num_layers, len(weights) + 1)))  # a config may lie
    if lacking := [name for name in wanted if name not in weights]:
        raise UsageError(f"{folder}: the weights lack {lacking[0]} (and {len(lacking) - 1} more); {_COPY_BOTH}")
    if strange := [name for name in weights if name not in wanted]:
        raise UsageError(f"{folder}: the weights hold {strange[0]}, which a QuARI of this config has not; {_COPY_BOTH}")
    for name, shape in wanted.items():
        if weights[name].shape != shape:
            found = f"{name} has the shape {weights[name].shape}, its config asks for {shape}"
            raise UsageError(f"{folder}: {found}; {_COPY_BOTH}")
        if not (np.abs(weights[name]) < LARGEST).all():
            raise UsageError(f"{folder}: {name} {NOT_FINITE}")
    return config, weights


def save(folder: Path, config: Config, weights: Weights, card: AdapterCard | None = None) -> None:
    """Ours: the same config, with a card if there is one, and the weights as safetensors; each file whole or not."""
    from safetensors.numpy import save as packed

    _put(folder / OURS, packed({name: np.ascontiguousarray(value) for name, value in weights.items()}))
    _put(folder / CONFIG, _yaml(config, card))


def export(folder: Path, config: Config, weights: Weights) -> None:
    """The released layout, as the authors' code loads it; needs the extra [torch]."""
    from io import BytesIO

    with rooms.needs("the released layout of QuARI"):
        import torch
    if config.preset != "released":
        raise UsageError("the released layout knows the preset `released` only; keep this checkpoint in eyespot's own")
    packed = BytesIO()
    torch.save({name: torch.from_numpy(np.array(value)) for name, value in weights.items()}, packed)
    _put(folder / RELEASED, packed.getvalue())
    _put(folder / CONFIG, _yaml(config))


def _yaml(config: Config, card: AdapterCard | None = None) -> bytes:
    import yaml

    document = config.as_yaml() | ({} if card is None else {"card": card.as_yaml()})
    return str(yaml.safe_dump(document, sort_keys=True)).encode()


def folder_of(place: Path | str) -> Path:
    """The folder of a checkpoint, fetched once if it is `hub:OWNER/NAME`."""
    if not str(place).startswith("hub:"):
        return Path(place)
    name = str(place).removeprefix("hub:")
    with rooms.needs("a checkpoint from the hub"):
        return hub.fetch(name, None, (OURS, RELEASED), hub.HAND).folder


def card_in(folder: Path) -> AdapterCard | None:
    """The card of a checkpoint; None if it has none, as the released ones."""
    return AdapterCard.of(_read_yaml(folder / CONFIG).get("card"))


def _read_yaml(path: Path) -> dict[str, Any]:
    """What a YAML file says without aliases, which unfold to any size, and with each key once."""
    import yaml

    class Plain(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it has an alias")
            node = super().compose_node(parent, index)
            keys = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
            if len({*keys}) < len(keys):
                raise yaml.YAMLError("a key stands twice")
            return node

    if not path.exists():
        raise UsageError(f"there is no {path}; give {_instead_of(path.parent)}")
    try:
        document = yaml.load(text_of(path, SMALL), Plain)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # of a date, a number, brackets
        raise UsageError(f"{path} is not YAML ({' '.join(str(error).split())}); copy the checkpoint again") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path} is not the config of a QuARI checkpoint; copy the checkpoint again")
    return document


def _instead_of(folder: Path) -> str:
    """What a user may have meant by a place that is not a checkpoint."""
    if folder.is_file():
        return f"a folder, such as {folder.parent}, or linear:{folder} for a static adapter"
    if (folder / "model" / CONFIG).is_file():
        return f"the checkpoint of this training, {folder / 'model'}"
    if (folder / "candidate" / CONFIG).is_file():
        return "another checkpoint: this training has named no model (--keep-anyway names it)"
    if (folder / "linear.safetensors").is_file():
        return f"linear:{folder}, which eyespot train linear made"
    return "the folder of a QuARI checkpoint, hub:OWNER/NAME, or linear:FILE"


def safe_arrays(path: Path, way: str = "copy the checkpoint again") -> tuple[dict[str, Any], Mapping[str, str]]:
    """The arrays of a safetensors file as float32, and its notes; `UsageError` for another, and for other kinds."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file, np.errstate(over="ignore"):
            arrays = {name: np.asarray(file.get_tensor(name), np.float32) for name in file.keys()}  # noqa: SIM118
            return arrays, file.metadata() or {}
    except (SafetensorError, OSError, TypeError, AttributeError) as error:  # the last two: numpy lacks bfloat16, float8
        raise UsageError(f"{path} cannot be read ({' '.join(str(error).split())}); {way}") from None


def _released(path: Path) -> dict[str, NDArray[np.float32]]:
    if not path.is_file():
        raise UsageError(f"there are no weights in {path.parent}; expected {OURS} or {RELEASED}")
    state = arrays_in(path, "a released QuARI checkpoint (once; eyespot keeps its own as safetensors)")
    if not isinstance(state, dict) or not all(isinstance(value, np.ndarray) for value in state.values()):
        raise UsageError(f"{path} is not a state dict of tensors; give the folder of a QuARI checkpoint")
    return {str(name): value.astype(np.float32) for name, value in state.items()}


def arrays_in(path: Path, name: str) -> Any:
    """What a file of torch holds, tensors as arrays; only tensors, numbers, text and containers of them are admitted.

    `name` is what needs the extra [torch]. `UsageError` for a file that is damaged or holds more.
    """
    with rooms.needs(name):
        import torch

    def array(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        if one.is_complex() or one.numel() * one.element_size() > one.untyped_storage().nbytes():
            raise ValueError("a shape beyond what is stored")
        return (one.float() if one.is_floating_point() else one).detach().numpy()

    try:
        contents = tensors_in(path)
        return {name: array(one) for name, one in contents.items()} if isinstance(contents, dict) else array(contents)
    except Exception:  # torch raises what its parts raise, with advice that would run code
        raise UsageError(f"{path} holds more than tensors, or is damaged; fetch it again") from None


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Every weight of a hypernetwork of this config, with its shape."""
    hidden, dim = config.hidden_dim, config.embedding_dim
    second = 3 if config.preset == "arxiv-2025-05" else 4  # a dropout is a place in the others
    linear = {"query_encoder.0": (hidden, dim), f"query_encoder.{second}": (hidden, hidden)}
    last = {"released": 3, "paper": 4, "arxiv-2025-05": 2}[config.preset]  # the paper's have a LayerNorm in between
    norms = ["query_encoder.1", f"query_encoder.{second + 1}"]
    for decoder in config.decoders:
        linear |= {f"{decoder}.0": (hidden, hidden), f"{decoder}.{last}": (dim, hidden)}
        norms += [f"{decoder}.1"] if config.preset == "paper" else []
    found: dict[str, tuple[int, ...]] = {"pos_emb": (1 + 2 * config.low_rank_dim, hidden)}
    if config.preset != "arxiv-2025-05":
        found["pos_scale"] = (1,)
    if config.preset == "released":
        linear |= {"step_proj.0": (hidden, hidden), "step_proj.2": (hidden, hidden)}
    else:
        found["step_embedding.weight"] = (config.num_steps, hidden)
    for layer in range(config.num_layers):
        prefix = f"transformer.layers.{layer}"
        found |= {f"{prefix}.self_attn.in_proj_weight": (3 * hidden, hidden)}
        found |= {f"{prefix}.self_attn.in_proj_bias": (3 * hidden,)}
        linear |= {f"{prefix}.self_attn.out_proj": (hidden, hidden)}
        linear |= {f"{prefix}.linear1": (4 * hidden, hidden), f"{prefix}.linear2": (hidden, 4 * hidden)}
        norms += [f"{prefix}.norm1", f"{prefix}.norm2"]
    for name, shape in linear.items():
        found |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in norms:
        found |= {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}
    return found


def _put(path: Path, data: bytes) -> None:
    make_folder(path.parent)
    write_whole(path, lambda file: file.write(data))


# -- what the authors published; their repository names no licence, and eyespot ships none of their weights: `hub:`
# fetches them --------------------------------------------------------------------------------------------------


# The weights of OpenAI's CLIP are the same in both libraries, and so are their tokens.
SAME_WEIGHTS = {
    "ViT-B-16/openai": "openai/clip-vit-base-patch16",
    "ViT-B-16-quickgelu/openai": "openai/clip-vit-base-patch16",
    "ViT-L-14/openai": "openai/clip-vit-large-patch14",
    "ViT-L-14-quickgelu/openai": "openai/clip-vit-large-patch14",
}
PUBLISHED = {  # a checkpoint's name for `--adapt`: encoders that it fits
    "hub:EricX003/QuARI-clip-vit-base-patch16": ("hf:openai/clip-vit-base-patch16", "open_clip:ViT-B-16/openai"),
    "hub:EricX003/QuARI-clip-vit-large-patch14": ("hf:openai/clip-vit-large-patch14", "open_clip:ViT-L-14/openai"),
    "hub:EricX003/QuARI-google-siglip2-base-patch16-512": ("hf:google/siglip2-base-patch16-512",),
    "hub:EricX003/QuARI-google-siglip2-large-patch16-512": ("hf:google/siglip2-large-patch16-512",),
}
_SAME = {name.casefold(): hub for name, hub in SAME_WEIGHTS.items()}


def model_of(encoder: str) -> str:
    """The model's own name: `hf:openai/clip-vit-base-patch16`, the bare hub id and open_clip's name are the same."""
    own = encoder.removeprefix("hf:").removeprefix("open_clip:").removeprefix("hf-hub:").casefold()
    return _SAME.get(own, own)
