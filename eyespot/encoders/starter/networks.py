"""The two networks of the built-in encoder, run by onnxruntime: what is in a picture, what a text means."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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

        self._known: OrderedDict[str, Floats] = OrderedDict()
        self.session = open_session(folder / "text.onnx")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST_TEXT)
        self.tokenizer.no_padding()  # the file asks for 128 tokens whatever the text

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Texts to unit vectors (n, 384); each alone, so that no vector depends on its neighbours."""
        vectors = [np.empty((0, 384), np.float32)]
        for text in texts:
            # A search asks twice, for the text and for its weakest match, and others may search between the two.
            vector = self._known.pop(text, None)
            if vector is None:
                ids = np.array([self.tokenizer.encode(text).ids], np.int64)  # (1, tokens)
                vector = np.asarray(self.session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0], np.float32)
            self._known[text] = vector
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            vectors.append(vector)
        return np.concatenate(vectors)


def open_session(file: Path) -> InferenceSession:
    """An onnxruntime session on the processor with EYESPOT_THREADS threads (default: one per core)."""
    return session_of(str(file))


def session_of(model: str | bytes) -> InferenceSession:
    """The same of a file's place or of its bytes."""
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # eight-bit weights are widened once, at loading
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def threads() -> int:
    """How many threads one network may use; a mistyped number of them could bring the machine to a halt."""
    number = os.environ.get("EYESPOT_THREADS") or str(os.cpu_count() or 1)
    if not (number.isdecimal() and 0 < int(number) <= MOST_THREADS):
        raise UsageError(f"EYESPOT_THREADS is {number!r}; give a whole number from 1 to {MOST_THREADS} or unset it")
    return int(number)
