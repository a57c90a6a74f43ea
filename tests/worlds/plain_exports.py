"""Exports of tiny towers whose vectors anybody can compute, in each layout of the hub, made without torch.

A picture's vector is its input times one matrix. A text's is the sum of its tokens' rows, each times the number of its
place: so what stands before, behind and at which place shows in the vector, and what a mask leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE, DIM, LENGTH = 8, 16, 512
PAD, END = "<pad>", "</s>"
ALPHABET = [PAD, END, *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?-_'\"äß"]
_rng = np.random.default_rng(5)
PIXEL_ROWS = _rng.normal(size=(3 * SIDE * SIDE, DIM)).astype(np.float32)
TOKEN_ROWS = _rng.normal(size=(len(ALPHABET), DIM)).astype(np.float32)
PLACES = _rng.normal(size=(LENGTH, 1)).astype(np.float32)
LAYOUTS = ("siglip", "siglip2", "clip", "immich", "immich next", "rclip")
PORTS = {
    "siglip": ("pixel_values", "input_ids", "pooler_output", "pooler_output"),
    "clip": ("pixel_values", "input_ids", "image_embeds", "text_embeds"),
    "immich": ("image", "text", "embedding", "embedding"),
    "immich next": ("image", "text", "image_embedding", "text_embedding"),
    "rclip": ("input", "input", "output", "output"),
}


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def picture_vector(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of an input (3, SIDE, SIDE), (DIM,)."""
    return unit(pixels.reshape(-1) @ PIXEL_ROWS)


def text_vector(tokens: Sequence[str], mask: Sequence[int] | None = None) -> NDArray[np.float32]:
    """Of tokens at their places, (DIM,); those with a 0 in the mask do not count."""
    numbers = [ALPHABET.index(token) for token in tokens]
    weights = PLACES[: len(numbers)] * (1 if mask is None else np.array(mask)[:, None])
    return unit((TOKEN_ROWS[numbers] * weights).sum(axis=0))


def save(folder: Path, layout: str, *, mask: bool | None = None, form: str = "", **settings: Any) -> Path:
    """An export in a layout; `settings` go before the usual ones of its pictures.

    form: "_int8" scales pictures by the largest number of all that come together, "_fp16" takes halves.
    """
    kind = "siglip" if layout == "siglip2" else layout
    ports, next_one = PORTS[kind], layout == "immich next"
    places = {"rclip": ("visual.onnx", "textual.onnx"), "immich": ("visual/model.onnx", "textual/model.onnx")}
    image, text = places.get(kind.partition(" ")[0], (f"onnx/vision_model{form}.onnx", f"onnx/text_model{form}.onnx"))
    words = folder / ("textual" if "immich" in kind else "") / "tokenizer.json"
    for name in (folder / image, folder / text, words):
        name.parent.mkdir(parents=True, exist_ok=True)
    _picture_tower(folder / image, ports[0], ports[2], lone=layout == "immich", form="raw" if next_one else form)
    masked = kind == "clip" if mask is None else mask
    _text_tower(folder / text, ports[1], ports[3], lone=layout == "immich", short="immich" in kind, mask=masked)
    _tokenizer(words)
    scale = {"mean": [0.5] * 3, "std": [0.5] * 3}
    if "immich" in kind:
        about = {"size": [SIDE, SIDE], "interpolation": "bicubic", "resize_mode": "squash", **scale}
        _write(folder / "visual" / "preprocess_cfg.json", about | settings)
        clean = {"context_length": 64, "tokenizer_kwargs": {"clean": "canonicalize"}}
        _write(folder / "config.json", {"embed_dim": DIM, "text_cfg": clean})
    elif kind != "rclip":
        longest = 64 if kind == "siglip" else 77
        _write(folder / "config.json", {"model_type": kind, "text_config": {"max_position_embeddings": longest}})
        side = {"height": SIDE, "width": SIDE}
        size = {"size": side} if kind == "siglip" else {"size": {"shortest_edge": SIDE}, "crop_size": side}
        usual = {"resample": 2 if layout == "siglip2" else 3, "image_mean": scale["mean"], "image_std": scale["std"]}
        _write(folder / "preprocessor_config.json", size | usual | settings)
        classes = {"siglip": "SiglipTokenizer", "siglip2": "GemmaTokenizer", "clip": "CLIPTokenizer"}
        _write(folder / "tokenizer_config.json", {"tokenizer_class": classes[layout], "pad_token": PAD})
    return folder


def _write(file: Path, values: Any) -> None:
    file.write_text(json.dumps(values))


def _tokenizer(file: Path) -> None:
    """A letter is a token, and an end token closes each text."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(ALPHABET)}, unk_token=PAD))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 1)])
    made.add_special_tokens([PAD, END])
    made.save(str(file))


def _picture_tower(file: Path, name: str, output: str, *, lone: bool, form: str) -> None:
    from onnx import TensorProto, helper

    batch = 1 if lone else "batch"
    shape = [batch, SIDE, SIDE, 3] if form == "raw" else [batch, 3, SIDE, SIDE]
    kinds = {"raw": TensorProto.UINT8, "_fp16": TensorProto.FLOAT16}
    port = helper.make_tensor_value_info(name, kinds.get(form, TensorProto.FLOAT), shape)
    steps = [helper.make_node("Flatten", ["laid"], ["flat"]), helper.make_node("MatMul", ["flat", "rows"], [output])]
    if form == "_int8":
        steps[0] = helper.make_node("Flatten", ["laid"], ["exact"])
        steps[1:1] = [
            helper.make_node("DynamicQuantizeLinear", ["exact"], ["whole", "scale", "zero"]),
            helper.make_node("DequantizeLinear", ["whole", "scale", "zero"], ["flat"]),
        ]
    values = {"rows": PIXEL_ROWS}
    if form == "raw":  # as Immich's next exports: bytes, which the graph normalises
        values |= {"half": np.array(127.5, np.float32), "one": np.array(1, np.float32)}
        steps = [
            helper.make_node("Cast", [name], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("Div", ["floats", "half"], ["scaled"]),
            helper.make_node("Sub", ["scaled", "one"], ["centred"]),
            helper.make_node("Transpose", ["centred"], ["laid"], perm=[0, 3, 1, 2]),
            *steps,
        ]
    else:
        steps.insert(0, helper.make_node("Cast", [name], ["laid"], to=TensorProto.FLOAT))
    _tower(file, steps, [port], output=output, values=values, batch=batch)


def _text_tower(file: Path, name: str, output: str, *, lone: bool, short: bool, mask: bool) -> None:
    from onnx import TensorProto, helper

    batch = 1 if lone else "batch"
    ports = [helper.make_tensor_value_info(name, TensorProto.INT32 if short else TensorProto.INT64, [batch, "length"])]
    steps = [
        helper.make_node("Gather", ["table", name], ["tokens"]),
        helper.make_node("Shape", [name], ["length"], start=1),
        helper.make_node("Slice", ["places", "start", "length", "axis"], ["some"]),
        helper.make_node("Mul", ["tokens", "some"], ["weighed"]),
        helper.make_node("ReduceSum", ["counted" if mask else "weighed", "along"], [output], keepdims=0),
    ]
    if mask:
        ports.append(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, [batch, "length"]))
        steps[4:4] = [
            helper.make_node("Cast", ["attention_mask"], ["ones"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["ones", "last"], ["column"]),
            helper.make_node("Mul", ["weighed", "column"], ["counted"]),
        ]
    values = {"table": TOKEN_ROWS, "places": PLACES, "start": np.array([0]), "axis": np.array([0])}
    values |= {"along": np.array([1]), "last": np.array([2])}
    _tower(file, steps, ports, output=output, values=values, batch=batch)


def _tower(file: Path, steps: Any, ports: Any, *, output: str, values: Any, batch: int | str) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, [batch, DIM])
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(steps, "tower", ports, [made], initializer=constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))
