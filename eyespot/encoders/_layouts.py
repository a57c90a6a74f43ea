"""Exports as they lie on the hub, read by their own files: which is which tower, and what becomes its input.

Layouts: transformers.js (onnx-community, Xenova: onnx/vision_model.onnx), Immich (visual/model.onnx) and rclip
(visual.onnx). Facts that the files do not say are never guessed from a model's name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.encoders._graphs import INT64, UINT8, Graph, Port, read_graph
from eyespot.encoders._torch import sigmoid_floor
from eyespot.storage.text_files import json_of
from eyespot.types import UsageError

VARIANTS = {  # of the numbers in a file; the first is what a model was published in
    "fp32": ("",),
    "fp16": ("_fp16",),
    "int8": ("_quantized", "_int8", "_uint8"),
    "q4": ("_q4", "_q4f16", "_bnb4"),
}
OUTPUTS = ("image_embeds", "text_embeds", "image_embedding", "text_embedding", "embedding", "pooler_output", "output")
SIGLIP_LENGTH, CLIP_LENGTH = 64, 77  # tokens
FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # of PIL, as preprocessor_config.json numbers them


# What describes an export, beside its towers or their folders
BESIDE = re.compile(
    r"((visual|textual)/)?(config|preprocess_cfg|(preprocessor|tokenizer)_config|special_tokens_map|export_meta)\.json"
)


@dataclass(frozen=True)
class ExportLayout:
    """Where an export has its towers, with `{}` for the variant, and its tokenizer."""

    name: str
    image: str
    text: str
    tokenizer: str


SHOWN = 10  # files that a message names
LAYOUTS = (
    ExportLayout("transformers.js", "onnx/vision_model{}.onnx", "onnx/text_model{}.onnx", "tokenizer.json"),
    ExportLayout("transformers.js", "vision_model{}.onnx", "text_model{}.onnx", "tokenizer.json"),
    ExportLayout("immich", "visual/model{}.onnx", "textual/model{}.onnx", "textual/tokenizer.json"),
    ExportLayout("rclip", "visual{}.onnx", "textual{}.onnx", "tokenizer.json"),
)


def beside(paths: Iterable[str]) -> list[str]:
    """Those of these files that describe an export; of one name that of the export itself comes last."""
    return sorted(filter(BESIDE.fullmatch, paths), key=lambda path: "/" not in path)


def layout_of(paths: Sequence[str], variant: str, place: object) -> tuple[ExportLayout, tuple[str, str]]:
    """The layout of an export by the names of its files, and its towers.

    Raises: UsageError if it is of none, with what `place` has instead.
    """
    for name in (variant, *VARIANTS):
        for layout in LAYOUTS:
            for suffix in VARIANTS[name]:
                towers = layout.image.format(suffix), layout.text.format(suffix)
                if towers[0] in paths and towers[1] in paths:
                    if name == variant:
                        return layout, towers
                    raise UsageError(f"{place} has no pair of towers in {variant}; it has them in {name}")
    graphs = [path for path in paths if path.endswith(".onnx")]
    there = ", ".join(graphs[:SHOWN]) + f" and {len(graphs) - SHOWN:,} more" * (len(graphs) > SHOWN) or "no .onnx file"
    raise UsageError(
        f"{place} has no pair of towers that eyespot knows; it has {there}; docs/use/models.md names the layouts"
    )


def described(folder: Path, variant: str = "fp32", known: Mapping[str, Any] = {}) -> dict[str, Any]:
    """What `eyespot.toml` would say of an export in this folder.

    known: what somebody knows of the model and its files do not say: dim, licence, and tables `image` and `text`.
    Raises: UsageError that names what no file says.
    """
    paths = [str(path.relative_to(folder).as_posix()) for path in sorted(folder.glob("*")) + sorted(folder.glob("*/*"))]
    layout, (image, text) = layout_of(paths, variant, folder)
    graphs = read_graph(folder / image), read_graph(folder / text)
    if not all(graph.inputs for graph in graphs):
        raise UsageError(f"{folder} has a tower without an input; it is not a pair of towers")
    stated = {Path(name).name: json_of(folder / name) for name in beside(paths)}
    files = {name: value if isinstance(value, dict) else {} for name, value in stated.items()}
    read = _of_immich if layout.name == "immich" else _of_transformers
    try:
        pictures, words = read(files, _port(graphs[1], image=False))
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise UsageError(f"{', '.join(files)} in {folder} are not those of a model ({error})") from None
    pictures = {"file": image, **_image_ports(graphs[0]), **pictures, **known.get("image", {})}
    masks = [{"mask": port.name} for port in graphs[1].inputs if "mask" in port.name]
    ports = {"input": _port(graphs[1], image=False).name, "output": _output(graphs[1]).name, **[*masks, {}][0]}
    words = {"file": text, "tokenizer": layout.tokenizer, **ports, **words, **known.get("text", {})}
    if words.pop("unmasked", False) and "mask" in words:
        words["full_mask"] = True
    width = _output(graphs[0]).shape[-1:] or (None,)
    dim = width[0] or known.get("dim") or _width(files.get("config.json", {}))
    missing = [name for name, value in (("size", pictures.get("size")), ("dim", dim)) if not value]
    if missing:
        raise UsageError(f"no file in {folder} says {' and '.join(missing)}; write an eyespot.toml with it")
    licence = str(known.get("licence") or "unknown; see where the folder came from")
    # A fixed batch; or scales that depend on the pictures and texts beside one
    lone = any(graph.inputs[0].shape[:1] == (1,) or "DynamicQuantizeLinear" in graph.operators for graph in graphs)
    floor = _floor(files.get("export_meta.json", {}) | known.get("logits", {}))
    more = {"batch": 1 if lone else None, "match_floor": floor}
    found = {"dim": dim, "licence": licence, "image": pictures, "text": words} | more
    return {name: value for name, value in found.items() if value is not None}


def _floor(stated: Mapping[str, Any]) -> float | None:
    """The weakest match by a model's scale and bias, where both are stated; a scale below 10 is its logarithm."""
    match stated.get("logit_scale"), stated.get("logit_bias"):
        case (int() | float() as scale, int() | float() as bias):
            return sigmoid_floor(scale if scale > 10 else math.exp(scale), bias)
    return None


def _image_ports(graph: Graph) -> dict[str, Any]:
    port, shape = graph.inputs[0], graph.inputs[0].shape
    sides = shape[1:3] if port.dtype == UINT8 else shape[2:4]
    found: dict[str, Any] = {"input": port.name, "output": _output(graph).name}
    if len(sides) == 2 and all(sides):
        found["size"] = sides[0] if sides[0] == sides[1] else list(sides)
    return found | ({"pixels": "bytes"} if port.dtype == UINT8 else {})


def _port(graph: Graph, image: bool) -> Port:
    return next((port for port in graph.inputs if image or "mask" not in port.name), Port("", INT64, ()))


def _output(graph: Graph) -> Port:
    ports = {port.name: port for port in graph.outputs}
    name = next((name for name in OUTPUTS if name in ports), None)
    if name is None:
        raise UsageError(f"the export gives {', '.join(ports)}, none of which is known; name one in eyespot.toml")
    return ports[name]


def _width(config: Mapping[str, Any]) -> int | None:
    """The vectors' width by a model's config.json."""
    places = (config, config.get("vision_config", {}), config.get("text_config", {}))
    keys = ("projection_dim", "embed_dim", "projection_size", "hidden_size")
    return next((int(place[key]) for key in keys for place in places if isinstance(place.get(key), int)), None)


# -- transformers.js --------------------------------------------------------------------------------------------


def _of_transformers(files: Mapping[str, Any], tokens: Port) -> tuple[dict[str, Any], dict[str, Any]]:
    config, pictures = files.get("config.json", {}), _pictures(files.get("preprocessor_config.json", {}))
    siglip = str(config.get("model_type", "")).startswith("siglip")
    # SigLIP was trained on 64 tokens, padded on the right, and without a mask, whatever its tokenizer hands out
    limits = (tokens.shape[1:2], config.get("text_config", {}).get("max_position_embeddings"))
    usual = SIGLIP_LENGTH if siglip else CLIP_LENGTH
    length = next((one for one in (*limits[0], limits[1]) if one), usual)
    words = {"length": min(length, SIGLIP_LENGTH) if siglip else length, **_padding(files)}
    if siglip:
        words |= {"lower_case": True, "unmasked": True, "padding_side": "right"}
        # The first SigLIP dropped punctuation; the second, whose tokenizer is Gemma's, did not
        if str(files.get("tokenizer_config.json", {}).get("tokenizer_class")).startswith("Siglip"):
            words["strip_punctuation"] = True
    return pictures, words


def _pictures(settings: Mapping[str, Any]) -> dict[str, Any]:
    """How a picture becomes the input, by preprocessor_config.json."""
    found: dict[str, Any] = {}
    size, crop = settings.get("size"), settings.get("crop_size")
    shortest = size.get("shortest_edge") if isinstance(size, dict) else size
    found["resize"] = "shortest" if shortest and settings.get("do_center_crop", crop is not None) else "squash"
    if found["resize"] == "shortest":
        found["crop"] = "floor"  # as transformers cuts, whose file this is
    chosen = (crop if found["resize"] == "shortest" else None) or size
    if isinstance(chosen, dict):
        sides = chosen.get("height", shortest), chosen.get("width", shortest)
        found["size"] = sides[0] if sides[0] == sides[1] else list(sides)
    elif chosen:
        found["size"] = chosen
    if settings.get("resample") in FILTERS:
        found["interpolation"] = FILTERS[settings["resample"]]
    if settings.get("do_normalize", True) and "image_mean" in settings:
        found |= {"mean": settings["image_mean"], "std": settings["image_std"]}
    return found


def padding_of(tokenizer: Path) -> dict[str, Any]:
    """The token that fills a text and the side it stands on, as far as a tokenizer.json says it.

    A vocabulary of 256,000 words behind it is not parsed for it.
    """
    text = tokenizer.read_text("utf-8", errors="replace")
    found = re.search(r'"padding"\s*:\s*(\{[^{}]*(\{[^{}]*\})?[^{}]*\})', text)
    stated = json.loads(found[1]) if found else {}
    values = {"padding_side": str(stated.get("direction", "")).lower(), "pad_token": stated.get("pad_token")}
    return {name: value for name, value in values.items() if value}


def _padding(files: Mapping[str, Any]) -> dict[str, Any]:
    """The same by the tokenizer's other files, which go before it."""
    settings = files.get("special_tokens_map.json", {}) | files.get("tokenizer_config.json", {})
    token, found = settings.get("pad_token"), {}
    if isinstance(token, dict):
        token = token.get("content")
    if token:
        found["pad_token"] = str(token)
    if settings.get("padding_side") in ("left", "right"):
        found["padding_side"] = settings["padding_side"]
    return found


# -- Immich -----------------------------------------------------------------------------------------------------


def _of_immich(files: Mapping[str, Any], tokens: Port) -> tuple[dict[str, Any], dict[str, Any]]:
    seen, config = files.get("preprocess_cfg.json", {}), files.get("config.json", {}).get("text_cfg", {})
    names = {name: name for name in ("size", "mean", "std", "interpolation")} | {"resize": "resize_mode"}
    pictures = {name: seen[key] for name, key in names.items() if seen.get(key)}
    limit = next((one for one in tokens.shape[1:2] if one), config.get("context_length", CLIP_LENGTH))
    words: dict[str, Any] = {"length": limit, **_padding(files)}
    if config.get("tokenizer_kwargs", {}).get("clean") == "canonicalize":
        words |= {"lower_case": True, "strip_punctuation": True}
    return pictures, words
