"""Tiny models of the true architectures, exported as they lie on the hub."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import tiny_models

FILTERS = {2: "bilinear", 3: "bicubic"}


def transformers_js(folder: Path, model: Path, kind: str) -> Path:
    """A saved CLIPModel or SiglipModel ("clip", "siglip") in the layout of onnx-community and Xenova."""
    import torch
    import transformers

    classes: Any = {"clip": transformers.CLIPModel, "siglip": transformers.SiglipModel}
    whole, clip = classes[kind].from_pretrained(model, attn_implementation="eager").eval(), kind == "clip"
    (folder / "onnx").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(model / name, folder / name)
    settings = json.loads((model / "processor_config.json").read_text())["image_processor"]
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    ids = torch.tensor([[3, 20, 1] + [0] * (0 if clip else 61)] * 2)
    words = {"input_ids": ids} | ({"attention_mask": torch.ones_like(ids)} if clip else {})
    outputs = ("image_embeds", "text_embeds") if clip else ("pooler_output", "pooler_output")
    pixels, file = {"pixel_values": torch.zeros(2, 3, 32, 32)}, folder / "onnx" / "vision_model.onnx"
    tiny_models.export(tiny_models.tower(whole, "image"), pixels, file, outputs[0])
    tower = tiny_models.tower(whole, "text")
    tiny_models.export(tower, words, file.with_name("text_model.onnx"), outputs[1], length=clip)
    return folder


def immich(folder: Path, source: Path) -> Path:
    """An export in transformers.js's layout as Immich keeps it: batches of one, numbers of 32 bits, other names."""
    import onnx

    for tower, new, ports in (
        ("vision_model", "visual", {"pixel_values": "image"}),
        ("text_model", "textual", {"input_ids": "text"}),
    ):
        graph = onnx.load(str(source / "onnx" / f"{tower}.onnx"))
        _renamed(graph, ports | {graph.graph.output[0].name: "embedding"})
        (folder / new).mkdir(parents=True)
        onnx.save(graph, str(folder / new / "model.onnx"))
    settings = json.loads((source / "preprocessor_config.json").read_text())
    about = {"size": [32, 32], "mean": settings["image_mean"], "std": settings["image_std"], "resize_mode": "squash"}
    about["interpolation"] = FILTERS[settings["resample"]]
    (folder / "visual" / "preprocess_cfg.json").write_text(json.dumps(about))
    text = {"context_length": 64, "tokenizer_kwargs": {"clean": "canonicalize"}}
    (folder / "config.json").write_text(json.dumps({"embed_dim": 32, "text_cfg": text}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, folder / "textual" / name)
    return folder


def _renamed(model: Any, names: dict[str, str]) -> None:
    """New names of ports, a batch of one, and 32-bit numbers of tokens, which a cast widens again."""
    import onnx

    graph = model.graph
    for node in graph.node:
        node.input[:] = [names.get(one, one) for one in node.input]
        node.output[:] = [names.get(one, one) for one in node.output]
    for port in (*graph.input, *graph.output):
        port.name = names.get(port.name, port.name)
        port.type.tensor_type.shape.dim[0].ClearField("dim_param")
        port.type.tensor_type.shape.dim[0].dim_value = 1
    tokens = graph.input[0]
    if tokens.name == "text":
        tokens.type.tensor_type.elem_type = onnx.TensorProto.INT32
        for node in graph.node:
            node.input[:] = ["text_wide" if one == "text" else one for one in node.input]
        graph.node.insert(0, onnx.helper.make_node("Cast", ["text"], ["text_wide"], to=onnx.TensorProto.INT64))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
