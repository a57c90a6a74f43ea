"""What a text means: all-MiniLM-L6-v2 in numpy, because a runtime takes ten times as long to open as a text to run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.encoders._graphs import raw_constants

Floats = NDArray[np.float32]
LONGEST_TEXT = 256  # tokens; what follows is not read
REMEMBERED = 256  # texts whose vectors are at hand
WIDTH, HEADS, EPSILON = 384, 12, np.float32(1e-12)  # as config.json of the model has them
# BLAS shares a product among threads, and sums in another order, from 262,144 multiplications on. Each product here is
# of a block of 8 rows and fewer columns than that: its bits are the same with any number of threads.
ROWS, COLUMNS = 8, {384: 64, 1536: 16}
TOGETHER = 6  # such parts of a matrix are widened at once: as floats they fit into a processor's cache, all do not
LAYER = "bert.encoder.layer.{}."
NAMES = (*(f"attention.self.{name}" for name in ("query", "key", "value")), "attention.output.dense")
NAMES += ("intermediate.dense", "output.dense")


@lru_cache(2)
def text_network(folder: Path) -> TextNetwork:
    """The network of a folder, once for all encoders of a process: its words take 30 ms to read."""
    return TextNetwork(folder)


class TextNetwork:
    """A sentence encoder for English (Wang et al. 2020); its weights have eight bits, and a scale for each column."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        # A search asks twice, for the text and for its weakest match, and others may search between the two.
        self._remembered = lru_cache(REMEMBERED)(self._vector)
        constants = raw_constants(folder / "text.onnx").items()
        self._tensors: dict[str, Any] = {
            name: np.frombuffer(data, np.int8 if name.endswith("_int8") else np.float32) for name, data in constants
        }
        matrices = [name for name in self._tensors if name.startswith("onnx::MatMul") and name.endswith("_int8")]
        places = (LAYER.format(layer) + name for layer in range(len(matrices) // len(NAMES)) for name in NAMES)
        self._matrices = dict(zip(places, matrices, strict=True))
        self._parts: dict[str, NDArray[np.int8]] | None = None
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST_TEXT)
        self.tokenizer.no_padding()  # the file asks for 128 tokens whatever the text

    def __call__(self, texts: Sequence[str], threads: int = 1) -> Floats:
        """Texts to unit vectors (n, 384); each alone, so that no vector depends on its neighbours, several at once."""
        if len(texts) < 2:
            return np.array([self._remembered(text) for text in texts], np.float32).reshape(-1, WIDTH)
        from eyespot.parallel import ordered_map

        workers = min(len(texts), threads)
        return np.array([*ordered_map(self._remembered, texts, workers, ahead=2 * workers)])

    def _vector(self, text: str) -> Floats:
        ids = self.tokenizer.encode(text).ids
        embedded = np.zeros((-(-len(ids) // ROWS) * ROWS, WIDTH), np.float32)  # rows of zeros fill the last block
        for name, rows in (("word", np.array(ids, np.int64)), ("position", np.arange(len(ids)))):
            table = f"bert.embeddings.{name}_embeddings.weight"
            codes, scales = self._tensors[f"{table}_int8"].reshape(-1, WIDTH), self._tensors[f"{table}_scale"]
            embedded[: len(ids)] += codes[rows] * scales[rows, None]
        embedded[: len(ids)] += self._tensors["bert.embeddings.token_type_embeddings.weight"][:WIDTH]
        states = self._normal(embedded.reshape(-1, ROWS, WIDTH), "bert.embeddings.LayerNorm")  # (blocks, 8, 384)
        for layer in range(len(self._matrices) // len(NAMES)):
            states = self._layer(states, LAYER.format(layer), len(ids))
        if self._parts is None:  # a search of one text ends here; from now on, weights lie as they are read
            self._parts = {}
        total = states.reshape(-1, WIDTH)[: len(ids)].sum(0)
        return np.asarray(total / np.sqrt(total @ total), np.float32)

    def _layer(self, states: Floats, layer: str, tokens: int) -> Floats:
        """One layer of BERT (Devlin et al. 2019): attention and two dense maps, each added to what comes in."""
        heads = (self._dense(states, layer + name).reshape(-1, HEADS, WIDTH // HEADS)[:tokens] for name in NAMES[:3])
        queries, keys, values = heads
        odds = np.einsum("ahd,bhd->hab", queries, keys) / np.float32(np.sqrt(WIDTH / HEADS))  # no BLAS
        odds = np.exp(odds - odds.max(-1, keepdims=True))
        odds /= odds.sum(-1, keepdims=True)
        seen = np.zeros(states.shape, np.float32)
        seen.reshape(-1, WIDTH)[:tokens] = np.einsum("hab,bhd->ahd", odds, values).reshape(tokens, WIDTH)
        states = self._normal(states + self._dense(seen, layer + NAMES[3]), f"{layer}attention.output.LayerNorm")
        inner = gelu(self._dense(states, layer + NAMES[4]))
        return self._normal(states + self._dense(inner, layer + NAMES[5]), f"{layer}output.LayerNorm")

    def _dense(self, rows: Floats, name: str) -> Floats:
        """Rows (blocks, 8, inner) by a matrix, plus its bias: (blocks, 8, outer)."""
        matrix = self._matrices[name]
        parts = self._parts_of(matrix, rows.shape[-1])
        products = np.empty((len(parts), *rows.shape[:2], parts.shape[-1]), np.float32)  # (parts, blocks, 8, columns)
        widened = np.empty((TOGETHER, 1, *parts.shape[1:]), np.float32)  # (6, 1, inner, columns)
        for at in range(0, len(parts), TOGETHER):
            np.copyto(widened[:, 0], parts[at : at + TOGETHER])
            np.matmul(rows, widened, out=products[at : at + TOGETHER])
        sums: Floats = products.transpose(1, 2, 0, 3).reshape(*rows.shape[:2], -1)
        sums *= self._tensors[matrix.removesuffix("int8") + "scale"]
        sums += self._tensors[f"{name}.bias"]
        return sums

    def _parts_of(self, matrix: str, inner: int) -> NDArray[np.int8]:
        """The codes of some columns each, (parts, inner, columns)."""
        parts: NDArray[np.int8] = self._tensors[matrix].reshape(inner, -1, COLUMNS[inner]).transpose(1, 0, 2)
        if self._parts is not None and matrix not in self._parts:
            self._parts[matrix] = np.ascontiguousarray(parts)
        return parts if self._parts is None else self._parts[matrix]

    def _normal(self, rows: Floats, name: str) -> Floats:
        """Layer normalisation (Ba et al. 2016) of the last axis."""
        rows = rows - rows.mean(-1, keepdims=True)
        spread = np.square(rows).mean(-1, keepdims=True)
        normal: Floats = (
            rows / np.sqrt(spread + EPSILON) * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        )
        return normal


def gelu(values: Floats) -> Floats:
    """Gaussian error linear units; the error function to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26)."""
    size: Floats = np.abs(values) * np.float32(np.sqrt(0.5))
    part, total = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * size), np.zeros_like(size)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = (total + np.float32(factor)) * part
    made: Floats = (
        np.float32(0.5) * values * (np.float32(1) + np.copysign(np.float32(1) - total * np.exp(-size * size), values))
    )
    return made
