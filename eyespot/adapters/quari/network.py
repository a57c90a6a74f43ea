"""The hypernetwork in torch, as it is trained; its state dict has the names of the released weights.

While nothing but their decoders tells U-tokens from V-tokens, one sequence of 1 + r tokens is run in place of 1 + 2r,
in which each token counts twice as a key of the attention. Dropout and dropped tokens do tell them apart. (QuARI,
section 3.2; the authors' code.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, einsum, nn
from torch.nn.functional import gelu, linear, normalize, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from eyespot.adapters.quari.config import Config
from eyespot.types import UsageError

PERIOD = 10_000.0


class AdaptedBatch(NamedTuple):
    """Adapted queries in factors: rows of images map as x ↦ identity · x + (x @ left) @ right.T.

    `queries` (n, E) of unit length, `left` and `right` (n, E, r), all float32.
    """

    queries: Tensor
    left: Tensor
    right: Tensor
    identity: float


class TorchHypernetwork(nn.Module):
    """Queries (n, E) to their views; `token_drop` is the chance that a step of training sets a token to zero."""

    pos_emb: Tensor
    pos_scale: Tensor

    def __init__(self, config: Config, token_drop: float = 0.0) -> None:
        super().__init__()
        dim, hidden = config.embedding_dim, config.hidden_dim
        self.config, self.token_drop = config, token_drop
        first, last = _perceptron(dim, hidden, config.dropout), [nn.Linear(hidden, hidden), nn.LayerNorm(hidden)]
        self.query_encoder = nn.Sequential(*(first[:3] if config.preset == "arxiv-2025-05" else first), *last)
        if config.preset == "released":
            self.step_proj = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden))
        else:
            self.step_embedding = nn.Embedding(config.num_steps, hidden)
        self.transformer = _Encoder(config)
        for name in config.decoders:
            # The paper's decoders have a layer norm, those of the released weights none, of May 2025 no dropout either
            parts = _perceptron(hidden, hidden, config.dropout)
            if config.preset != "paper":
                del parts[1]
            if config.preset == "arxiv-2025-05":
                del parts[-1]
            self.add_module(name, nn.Sequential(*parts, nn.Linear(hidden, dim)))
        # Sines on even channels and cosines on odd ones, (rows, hidden)
        at = torch.arange(1 + 2 * config.low_rank_dim)[:, None] * torch.exp(
            torch.arange(0, hidden, 2) * (-math.log(PERIOD) / hidden)
        )
        positions = torch.stack([at.sin(), at.cos()], dim=-1).flatten(1)
        self.register_buffer("pos_emb", positions)
        self.register_buffer("pos_scale", torch.ones(1), persistent=config.preset != "arxiv-2025-05")

    def start_at_identity(self) -> None:
        """Zero the last layers of the query and U decoders, so that every view is the frozen space.

        The query's residual, made unit, is then the query, and W = I + s·0·Vᵀ; the first gradients reach U through V.
        `UsageError` for a config with norms, which divide 0 by 0, or of another form.
        """
        config = self.config
        if config.preset != "released" or config.use_fro_norm or not config.query_residual_weight > 0:
            raise UsageError(
                "only the preset `released` without Frobenius norms and with a residual query can start at the identity"
            )
        for name in ("query_decoder", "dec_u_img"):
            for parameter in self.get_submodule(f"{name}.3").parameters():
                nn.init.zeros_(parameter)

    @property
    def telling(self) -> bool:
        """Whether U-tokens and V-tokens differ now, so that both have to be computed."""
        return self.training and (self.config.dropout > 0 or self.token_drop > 0)

    def forward(self, queries: Tensor) -> AdaptedBatch:
        """The views of queries (n, E), which are taken as they are, noise included."""
        condition, u_tokens, v_tokens = self.tokens(queries)
        if self.config.preset == "arxiv-2025-05":  # its public code maps the query, too
            sources = [(name, u_tokens if "_u" in name else v_tokens) for name in self.config.decoders]
            parts = [self.get_submodule(name)(tokens).float() for name, tokens in sources]  # (n, r, E) each
            text_u, text_v, u, v = parts if self.config.separate_decoders else parts * 2
            wide = queries.float()
            mapped = einsum("nr,nre->ne", einsum("ne,nre->nr", wide, text_u), text_v)
            adapted = normalize(mapped + wide if self.config.use_residual else mapped, dim=-1)
            return AdaptedBatch(adapted, u.transpose(1, 2), v.transpose(1, 2), 0.0)
        # Norms and products of maps are never in half precision
        sources = [("dec_u_img", u_tokens), ("dec_v_img", v_tokens)]
        u, v = (self.get_submodule(name)(tokens).transpose(1, 2).float() for name, tokens in sources)
        decoded = self.get_submodule("query_decoder")(condition).float()
        if self.config.preset == "paper":
            return AdaptedBatch(normalize(decoded, dim=-1), v, u, 0.0)
        if self.config.use_fro_norm:
            u, v = (part / (part.flatten(1).norm(dim=1)[:, None, None] + 1e-8) for part in (u, v))
        weight = self.config.query_residual_weight
        mixed = (1 - weight) * decoded + weight * queries.float()
        return AdaptedBatch(normalize(mixed, dim=-1), self.config.anchor_scale * u, v, 1.0)

    def tokens(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The condition tokens (n, H), the U-tokens and the V-tokens (n, r, H) after all steps."""
        rank, copies = self.config.low_rank_dim, 2 if self.telling else 1
        condition = self.query_encoder(queries)
        places = (self.pos_emb[:rank] * self.pos_scale).repeat(copies, 1)  # (copies * r, H)
        tokens, counts = condition.new_zeros(len(queries), copies * rank, self.config.hidden_dim), None
        if copies == 1:  # what is added to the attention's logits, so that every token but the first counts twice
            counts = condition.new_full((1 + rank, 1 + rank), math.log(2), dtype=torch.float32)
            counts[:, 0] = 0
        for step in range(self.config.num_steps):
            step_condition = condition + self._step(step)
            out = self.transformer(torch.cat([step_condition[:, None], tokens + places], dim=1), counts)
            # As released: what a token has accumulated is dropped, after the last step, too, so that the decoders see
            # zeros
            tokens = tokens + out[:, 1:]
            if self.training and self.token_drop:
                shown = torch.rand(tokens.shape[:2], device=tokens.device) >= self.token_drop
                tokens = tokens * shown[..., None]
            if self.config.preset != "arxiv-2025-05":
                condition = condition + out[:, 0]
        return condition, tokens[:, :rank], tokens[:, -rank:]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The state dict as arrays, for the files of checkpoints."""
        return {name: value.detach().float().cpu().numpy() for name, value in self.state_dict().items()}

    def take(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Load the weights of a checkpoint."""
        self.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})

    def save_memory(self) -> None:
        """Keep no layer's activations: the backward pass computes them again, for a third more work."""
        self.transformer.frugal = True

    # -- parts ---------------------------------------------------------------------------------------------

    def _step(self, step: int) -> Tensor:
        if self.config.preset != "released":
            return self.step_embedding.weight[step]
        half = self.config.hidden_dim // 2
        at = torch.arange(half, device=self.pos_emb.device, dtype=self.pos_emb.dtype)
        angles = step * torch.exp(-math.log(PERIOD) * at / half)
        found: Tensor = self.step_proj(torch.cat([angles.cos(), angles.sin()]))  # (H,)
        return found


def _perceptron(inside: int, hidden: int, dropout: float) -> list[nn.Module]:
    return [nn.Linear(inside, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Dropout(dropout)]


class _Encoder(nn.Module):
    """The layers that all refinement steps share; frugal ones compute their activations again in the backward pass."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        layers = (_Layer(config.hidden_dim, config.nhead, config.dropout) for _ in range(config.num_layers))
        self.layers, self.frugal = nn.ModuleList(layers), False

    def forward(self, tokens: Tensor, counts: Tensor | None) -> Tensor:
        for layer in self.layers:
            if self.frugal and self.training:
                tokens = checkpoint(layer, tokens, counts, use_reentrant=False)
            else:
                tokens = layer(tokens, counts)
        return tokens


class _Layer(nn.Module):
    """A pre-norm encoder layer; torch's own takes a short cut without gradients that misreads the mask of counts."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self_attn = _Attention(hidden, heads, dropout)
        self.linear1, self.linear2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(hidden), nn.LayerNorm(hidden), nn.Dropout(dropout)

    def forward(self, tokens: Tensor, counts: Tensor | None) -> Tensor:
        tokens = tokens + self.dropout(self.self_attn(self.norm1(tokens), counts))
        inner = self.dropout(gelu(self.linear1(self.norm2(tokens))))
        added: Tensor = self.dropout(self.linear2(inner))
        return tokens + added


class _Attention(nn.Module):
    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.in_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3 * hidden, hidden)))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * hidden))
        self.out_proj = nn.Linear(hidden, hidden)

    def forward(self, tokens: Tensor, counts: Tensor | None) -> Tensor:
        count, length, _ = tokens.shape
        both = linear(tokens, self.in_proj_weight, self.in_proj_bias).reshape(count, length, 3, self.heads, -1)
        asking, keys, values = both.permute(2, 0, 3, 1, 4)  # (n, heads, length, H / heads) each
        chance = self.dropout if self.training else 0.0
        mask = None if counts is None else counts.to(asking.dtype)
        found = scaled_dot_product_attention(asking, keys, values, mask, chance)
        attended: Tensor = self.out_proj(found.transpose(1, 2).flatten(2))
        return attended
