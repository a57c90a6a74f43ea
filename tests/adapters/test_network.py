"""The hypernetwork that is trained, against the numpy one that serves, the authors' outputs and torch's own layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eyespot.adapters.quari import Config, Hypernetwork
from tests.lazy_import import lazy_import, requires

torch = lazy_import("torch")
torch_network = lazy_import("eyespot.adapters.quari.network")  # imports torch
pytestmark = requires("torch")

SMALL = Config(12, low_rank_dim=3, hidden_dim=16, num_steps=2, nhead=4, num_layers=2, dropout=0.0)
FORMS = [
    *({}, {"use_fro_norm": False}, {"preset": "paper"}, {"preset": "arxiv-2025-05"}),
    *({"preset": "arxiv-2025-05", "use_residual": True}, {"preset": "arxiv-2025-05", "separate_decoders": False}),
]


def queries_of(dim: int, count: int = 3) -> Any:
    drawn = np.random.default_rng(1).normal(size=(count, dim))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def made(config: Config, token_drop: float = 0.0) -> Any:
    torch.manual_seed(3)
    return torch_network.TorchHypernetwork(config, token_drop)


def dense(views: Any) -> Any:
    """The maps of rows, (n, dim, dim)."""
    return views.identity * torch.eye(views.left.shape[1]) + views.left @ views.right.mT


@pytest.mark.parametrize("changes", FORMS)
def test_what_is_trained_is_what_serves(changes: dict[str, Any]) -> None:
    config, queries = replace(SMALL, **changes), queries_of(12)
    network = made(config).eval()

    with torch.no_grad():
        trained = network(torch.from_numpy(queries))
    served = Hypernetwork(config, network.weights()).adapt(queries)

    for at, view in enumerate(served):
        assert np.abs(trained.queries[at].numpy() - view.query).max() < 1e-5
        matrix = view.identity * np.eye(12) + view.left @ view.right.T
        assert np.linalg.norm(dense(trained)[at].numpy() - matrix) / np.linalg.norm(matrix) < 1e-5


def test_a_layer_is_torch_s_own_pre_norm_layer() -> None:
    layer = made(SMALL).transformer.layers[0]
    torchs = torch.nn.TransformerEncoderLayer(16, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True)
    torchs.load_state_dict(layer.state_dict())
    tokens = torch.randn(2, 7, 16)

    assert torch.allclose(layer(tokens, None), torchs(tokens), atol=1e-5)


def test_u_tokens_are_v_tokens_so_half_the_sequence_serves() -> None:
    queries = torch.from_numpy(queries_of(12))
    telling = made(SMALL, token_drop=1e-12).train()  # computes both, and drops none
    not_telling = made(SMALL).train()

    both, half = telling.tokens(queries), not_telling.tokens(queries)

    assert telling.telling and not not_telling.telling
    assert torch.allclose(both[1], both[2], atol=1e-6)
    for one, other in zip(both, half, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_recomputed_activations_give_the_same_gradients_with_dropout() -> None:
    gradients = []
    for frugal in (False, True):
        network = made(replace(SMALL, dropout=0.3), token_drop=0.2).train()
        network.save_memory() if frugal else None
        torch.manual_seed(5)
        views = network(torch.from_numpy(queries_of(12)))
        (views.queries.sum() + views.left.square().sum() + views.right[:, 0].sum()).backward()
        gradients.append([parameter.grad for parameter in network.parameters()])

    assert all(torch.allclose(one, other, atol=1e-7) for one, other in zip(*gradients, strict=True))
