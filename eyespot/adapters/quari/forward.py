"""The hypernetwork in numpy: a query's vector to its own view of the space, in factors.

At inference every U-token equals the V-token of its row: both start at zero, get the same rows of the position table,
and pass through layers that treat tokens alike; only the decoders tell U from V. So one sequence of 1 + r tokens is run
in place of 1 + 2r, in which each token counts twice as a key of the attention. (QuARI, section 3; the authors' code.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari.config import Config
from eyespot.kernels import compile_loops, compiled
from eyespot.types import AdaptedQuery, UsageError, Vectors

Reals: TypeAlias = NDArray[np.floating[Any]]
EPSILON = 1e-5  # of the layer norms
ROOT = math.sqrt(0.5)
PERIOD = 10_000.0
MANY = 1 << 14  # queries looked over at once
BATCH = 16  # queries at once: their activations stay in the cache


class Hypernetwork:
    """Weights of a checkpoint, ready to adapt queries; `precision` float32, or float64 to check against."""

    def __init__(self, config: Config, weights: Mapping[str, Reals], precision: Any = np.float32) -> None:
        self.config = config
        self.weights = {name: np.ascontiguousarray(value, precision) for name, value in weights.items()}
        self.precision = precision

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        """A view for each query of (n, dim).

        `UsageError` for vectors of another length than the network was made for, and for one without a direction.
        """
        if queries.ndim != 2 or queries.shape[1] != self.config.embedding_dim:
            raise UsageError(
                f"the adapter takes vectors of {self.config.embedding_dim} components, these have {queries.shape[-1]}; "
                "use the encoder that it was trained on"
            )
        refuse_without_direction(queries)
        views: list[AdaptedQuery] = []
        for at in range(0, len(queries), BATCH):
            views += self._views(self._unit(queries[at : at + BATCH].astype(self.precision)))
        return views

    def tokens(self, queries: Reals) -> tuple[Reals, Reals]:
        """The condition tokens (n, H) and the tokens of U, which are those of V, (n, r, H), after all steps."""
        inner = gelu(self._norm("query_encoder.1", self._linear("query_encoder.0", queries)))
        second = 3 if self.config.preset == "arxiv-2025-05" else 4
        condition = self._norm(f"query_encoder.{second + 1}", self._linear(f"query_encoder.{second}", inner))
        rank = self.config.low_rank_dim
        tokens = np.zeros((len(queries), rank, self.config.hidden_dim), self.precision)
        places = self.weights["pos_emb"][:rank] * self.weights.get("pos_scale", 1)  # (r, H)
        for step in range(self.config.num_steps):
            step_condition = condition + self._step(step)
            out = np.concatenate([step_condition[:, None], tokens + places], axis=1)  # (n, 1 + r, H)
            for layer in range(self.config.num_layers):
                name = f"transformer.layers.{layer}"
                out = out + self._attended(f"{name}.self_attn", self._norm(f"{name}.norm1", out))
                wide = gelu(self._linear(f"{name}.linear1", self._norm(f"{name}.norm2", out)))
                out = out + self._linear(f"{name}.linear2", wide)
            tokens = tokens + out[:, 1:]
            if self.config.preset != "arxiv-2025-05":  # whose condition stays the encoded query
                condition = condition + out[:, 0]
        return condition, tokens

    # -- parts ---------------------------------------------------------------------------------------------

    def _views(self, queries: Reals) -> Iterator[AdaptedQuery]:
        condition, tokens = self.tokens(queries)
        if self.config.preset == "arxiv-2025-05":
            yield from self._mapped_views(queries, tokens)
            return
        decoded = self._decoded("query_decoder", condition)
        weight = self.config.query_residual_weight if self.config.preset == "released" else 0.0
        adapted = self._unit((1 - weight) * decoded + weight * queries)
        left, right = (self._decoded(name, tokens).transpose(0, 2, 1) for name in ("dec_u_img", "dec_v_img"))
        for query, u, v in zip(adapted, left, right, strict=True):
            # `released`: x + s (xU)Vᵀ; `paper`: U-tokens span the output, V-tokens select from the input, (xV)Uᵀ
            if self.config.preset == "paper":
                yield AdaptedQuery(query, np.ascontiguousarray(v), np.ascontiguousarray(u), 0.0)
                continue
            if self.config.use_fro_norm:
                u, v = (part / (np.linalg.norm(part) + 1e-8) for part in (u, v))
            yield AdaptedQuery(query, np.ascontiguousarray(self.config.anchor_scale * u), np.ascontiguousarray(v), 1.0)

    def _mapped_views(self, queries: Reals, tokens: Reals) -> Iterator[AdaptedQuery]:
        """The public code of May 2025: the query, too, goes through a map."""
        parts = [self._decoded(name, tokens) for name in self.config.decoders]  # (n, r, E) each
        text_u, text_v, u, v = parts if self.config.separate_decoders else parts * 2
        mapped = np.einsum("nr,nre->ne", np.einsum("ne,nre->nr", queries, text_u), text_v)
        adapted = self._unit(mapped + queries if self.config.use_residual else mapped)
        for query, left, right in zip(adapted, u, v, strict=True):
            yield AdaptedQuery(query, np.ascontiguousarray(left.T), np.ascontiguousarray(right.T), 0.0)

    def _unit(self, rows: Reals) -> Reals:
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), self.precision)

    def _decoded(self, name: str, tokens: Reals) -> Reals:
        inner = self._linear(f"{name}.0", tokens)
        if self.config.preset == "paper":
            return self._linear(f"{name}.4", gelu(self._norm(f"{name}.1", inner)))
        return self._linear(f"{name}.{2 if self.config.preset == 'arxiv-2025-05' else 3}", gelu(inner))

    def _step(self, step: int) -> Reals:
        if self.config.preset != "released":  # a learned embedding of each step
            return np.asarray(self.weights["step_embedding.weight"][step])
        half = self.config.hidden_dim // 2
        angles = step * np.exp(-math.log(PERIOD) * np.arange(half) / half)
        waves = np.concatenate([np.cos(angles), np.sin(angles)]).astype(self.precision)  # (H,)
        return self._linear("step_proj.2", gelu(self._linear("step_proj.0", waves)))

    def _attended(self, name: str, tokens: Reals) -> Reals:
        count, length, hidden = tokens.shape
        both = tokens @ self.weights[f"{name}.in_proj_weight"].T + self.weights[f"{name}.in_proj_bias"]
        heads = both.reshape(count, length, 3, self.config.nhead, -1)
        asking, keys, values = heads.transpose(2, 0, 3, 1, 4)  # (n, heads, 1 + r, H / heads) each
        weights = asking @ keys.swapaxes(-1, -2) / np.array(math.sqrt(hidden // self.config.nhead), self.precision)
        # How often each key stands in the full sequence: the condition once, every other token twice
        counts = np.array([1.0, *[2.0] * self.config.low_rank_dim], self.precision)
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True)) * counts
        attended = (weights / weights.sum(axis=-1, keepdims=True)) @ values
        return self._linear(f"{name}.out_proj", attended.transpose(0, 2, 1, 3).reshape(count, length, hidden))

    def _linear(self, name: str, values: Reals) -> Reals:
        return np.asarray(values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def _norm(self, name: str, values: Reals) -> Reals:
        centred = values - values.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.array(EPSILON, self.precision))
        return np.asarray(centred / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])


def refuse_without_direction(queries: Vectors) -> None:
    """`UsageError` with the number of the first query (n, dim) that is zero or not finite."""
    for at in range(0, len(queries), MANY):
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(np.asarray(queries[at : at + MANY], np.float64), axis=1)
        bad = ~((lengths > 0) & np.isfinite(lengths))
        if bad.any():
            row = int(np.argmax(bad))
            what = "is zero and has no direction" if lengths[row] == 0 else "holds NaN or infinity"
            raise UsageError(f"query {at + row} (counted from 0) {what}; embed it again, or leave it out")


def gelu(values: Reals) -> Reals:
    """x · Φ(x), by the exact error function as torch has it, in the precision given; a tanh would be off by 1e-3."""
    flat = np.ascontiguousarray(values)
    return np.asarray((_compiled_gelu() if compiled() else gelu_by_numpy)(flat.ravel())).reshape(flat.shape)


def gelu_by_numpy(values: Reals) -> Reals:
    """The same to the last bit, of (n,), by the error function of Python's own math, one number after another."""
    exact = values.astype(np.float64)
    error = np.fromiter(map(math.erf, (exact * ROOT).tolist()), np.float64, len(exact))
    return np.asarray((0.5 * exact * (1.0 + error)).astype(values.dtype))


@cache
def _compiled_gelu() -> Callable[[Reals], Reals]:
    @compile_loops
    def loop(values: Reals) -> Reals:
        out = np.empty_like(values)
        for at in range(len(values)):
            value = np.float64(values[at])
            out[at] = 0.5 * value * (1.0 + math.erf(value * ROOT))
        return out

    return loop
