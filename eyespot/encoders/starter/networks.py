"""The picture network of the built-in encoder, run by onnxruntime: what is in a picture, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.systems import usable_cores
from eyespot.types import UsageError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = NDArray[np.float32]
MOST_THREADS = 256  # some more, and the processor is busy with nothing but them


def session_of(model: str | bytes) -> InferenceSession:
    """An onnxruntime session on the processor, of a file's place or bytes."""
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def threads() -> int:
    """How many threads one network may use; a mistyped number of them could bring the machine to a halt."""
    number = os.environ.get("EYESPOT_THREADS") or str(usable_cores())
    if not (number.isdecimal() and 0 < int(number) <= MOST_THREADS):
        raise UsageError(f"EYESPOT_THREADS is {number!r}; give a whole number from 1 to {MOST_THREADS} or unset it")
    return int(number)


# -- where it sees something ------------------------------------------------------------------------------------

# The class activation map of the picture network. The features of a picture are the mean of 9 × 9 cells, and all that
# follows is known, so the derivative of a score by the features is exact. What a cell adds to the score is, to first
# order, that derivative times the cell (Grad-CAM, Selvaraju et al. 2017).
CELLS, WEIGHTS = "/_swish_1/Clip_output_0", "net._fc.weight"  # in the graph: before the mean, and of the classifier
GRAPH, OUTPUT, NAME = 7, 12, 1  # the fields of an ONNX file (onnx.proto): model.graph, graph.output, its name


def open_with_cells(file: Path) -> InferenceSession:
    """The picture network with two outputs more: cells (n, 1280, 9, 9) and the classifier's weights (1000, 1280)."""
    # A reader of protocol buffers merges what comes twice: outputs of the graph are appended as bytes
    named = (_field(GRAPH, _field(OUTPUT, _field(NAME, name.encode()))) for name in (CELLS, WEIGHTS))
    return session_of(file.read_bytes() + b"".join(named))


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128  # one byte of length
    return bytes([number << 3 | 2, len(content)]) + content


def slopes(query: Floats, features: Floats, odds: Floats, joint: dict[str, Any], classifier: Any) -> Floats:
    """The derivative of a score by the features of a picture, (1280,).

    `query` (dim,) and the picture's vector have unit length; `features` (1280,) and the `odds` (1000,) of its classes
    are the picture's; `classifier` gives weights (1000, 1280), softening temperature and weight of looks.
    """
    weights, temperature, looks_weight = classifier
    texts, basis = joint["class_texts"], joint["look_basis"]
    meaning, looks = query[: texts.shape[1]], query[texts.shape[1] :]
    share = 1 / np.sqrt(1 + looks_weight**2)  # the two halves of a picture's vector have fixed lengths
    by_meaning = share * _across(meaning, odds @ texts)  # (text dim,)
    by_logit = odds / temperature * (texts @ by_meaning)  # (1000,)
    by_look = share * looks_weight * _across(looks, features @ basis)  # (look dim,)
    return np.asarray(by_logit @ weights + basis @ by_look)


def _across(toward: Floats, vector: Floats) -> Floats:
    """The derivative of `toward` · unit(vector) by the vector."""
    length = np.linalg.norm(vector)
    ahead = vector / length
    turned: Floats = (toward - (toward @ ahead) * ahead) / length
    return turned
