"""A learned re-ranker in an ONNX file: what it gets, what it says, and files that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyespot import rooms
from eyespot.types import LocalFeatures, UsageError
from tests.wording import check_wording

onnx = pytest.importorskip("onnx")


def ranker(path: Path, names: tuple[str, ...] = ("query", "image"), reduced: bool = True) -> Path:
    """A network that computes the Chamfer similarity: the mean of each query descriptor's best match."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Transpose", [names[1]], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", [names[0], "turned"], ["alike"]),
        helper.make_node("ReduceMax", ["alike", "last"], ["best"], keepdims=0),
    ]
    nodes += [helper.make_node("ReduceMean", ["best"], ["score"], keepdims=0)] if reduced else []
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, None]) for name in names]
    output = helper.make_tensor_value_info("score" if reduced else "best", TensorProto.FLOAT, None)
    last = numpy_helper.from_array(np.array([2], np.int64), "last")
    graph = helper.make_graph(nodes, "chamfer", inputs, [output], [last])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))
    return path


def features(seed: int, count: int) -> LocalFeatures:
    rng = np.random.default_rng(seed)
    return LocalFeatures(rng.integers(0, 255, (count, 8), np.uint8), rng.uniform(0, 50, (count, 3)).astype(np.float32))


def test_a_network_scores_as_its_formula_in_numpy(tmp_path: Path) -> None:
    query, image = features(0, 5), features(1, 9)

    found = rooms.load("search.local", f"onnx:{ranker(tmp_path / 'r.onnx')}").score(query, image)

    left, right = (one.descriptors / np.linalg.norm(one.descriptors, axis=1, keepdims=True) for one in (query, image))
    assert found == pytest.approx((left @ right.T).max(axis=1).mean(), abs=1e-6)


def test_files_that_are_no_re_ranker_are_refused(tmp_path: Path) -> None:
    """One that is missing, one that is none, one with other inputs, and one that gives more than one number."""
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    others, whole = ranker(tmp_path / "others.onnx", ("left", "right")), ranker(tmp_path / "whole.onnx", reduced=False)

    for file in (tmp_path / "missing.onnx", tmp_path / "broken.onnx", others, whole):
        with pytest.raises(UsageError) as refused:
            rooms.load("search.local", f"onnx:{file}").score(features(0, 5), features(1, 9))
        if file.stem != "broken":  # whose sentence is that of onnxruntime
            check_wording(str(refused.value))
