"""The two networks of the built-in encoder, run by onnxruntime: what is in a picture, what a text means."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.parallel import ordered_map
from eyespot.storage.systems import usable_cores
from eyespot.types import UsageError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = NDArray[np.float32]
LONGEST_TEXT = 256  # tokens; what follows is not read
REMEMBERED = 256  # texts whose vectors are at hand
MOST_THREADS = 256  # some more, and the processor is busy with nothing but them


class TextNetwork:
    """all-MiniLM-L6-v2, a sentence encoder for English."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        # A search asks twice, for the text and for its weakest match, and others may search between the two.
        self._remembered = lru_cache(REMEMBERED)(self._vector)
        self.session = session_of(_widened_late(folder), several=False)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST_TEXT)
        self.tokenizer.no_padding()  # the file asks for 128 tokens whatever the text

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Texts to unit vectors (n, 384); each alone, so that no vector depends on its neighbours, several at once."""
        workers = min(len(texts), threads())
        rows = ordered_map(self._remembered, texts, workers, ahead=2 * workers)
        return np.concatenate([np.empty((0, 384), np.float32), *rows])

    def _vector(self, text: str) -> Floats:
        ids = np.array([self.tokenizer.encode(text).ids], np.int64)  # (1, tokens)
        return np.asarray(self.session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0], np.float32)


def _widened_late(folder: Path) -> bytes:
    """The text network with only those rows of its table of words widened to float32 that a text has, to the same bits.

    A reader of ONNX skips fields that it does not know, and merges what comes twice: the byte before two nodes, their
    length and first input makes unknown fields of them, and `late_rows.onnx` has what takes their place.
    """
    table = b"bert.embeddings.word_embeddings.weight"
    with (folder / "text.onnx").open("rb") as opened:
        file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    first, second = sorted(file.find(table + end) - 5 for end in (b"_int8\n,", b"\n\x03ids"))
    model, unknown = memoryview(file), b"\x1a"
    parts: list[bytes | memoryview] = [model[:first], unknown, model[first + 1 : second], unknown, model[second + 1 :]]
    return b"".join([*parts, (folder / "late_rows.onnx").read_bytes()])


def session_of(model: str | bytes, several: bool = True) -> InferenceSession:
    """An onnxruntime session on the processor, of a file's place or bytes; with `several` or one of its threads."""
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads() if several else 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # eight-bit weights are widened once, at loading
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
