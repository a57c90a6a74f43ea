"""The symmetric contrastive loss, each similarity under the map of its query, and no image ever mapped.

x ↦ i·x + (x L) Rᵀ is needed only in its products: the numerator is i·x·q̂ + (x L)·(Rᵀ q̂), the squared norm
i·|x|² + 2i·(x L)·(x R) + (x L)(Rᵀ R)(x L)ᵀ. So a batch of B takes [B, B, r] numbers at most, a piece at a time, and
never [B, B, E].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, einsum
from torch.utils.checkpoint import checkpoint

from eyespot.adapters.quari.network import AdaptedBatch
from eyespot.adapters.quari.training.memory import PIECE

TINY = 1e-12  # squared length below which a mapped image has no direction


class Targets(NamedTuple):
    """What the queries of a batch are to find.

    images: (B, E), query i's own in row i. semi: (B, s, E) semi-positives of each, `weights` (B, s) their soft targets,
    0 where there is none. hidden: (B, B), True where image j is no negative of query i: another caption's copy of
    query i's image, or one of its semi-positives.
    """

    images: Tensor
    semi: Tensor
    weights: Tensor
    hidden: Tensor


def symmetric(views: AdaptedBatch, targets: Targets, temperature: float) -> Tensor:
    """The mean of both directions (QuARI, equations 9 and 10).

    Query to image: cross-entropy over the batch's images and the query's semi-positives, with the targets 1 and their
    weights, which are not made to sum to 1. Image to query: over the queries, each under its own map.
    """
    logits = cosines(views, targets.images) / temperature  # (B, B)
    logits = logits.masked_fill(targets.hidden, -torch.inf)
    semi = (cosines(views, targets.semi) / temperature).masked_fill(targets.weights == 0, -torch.inf)  # (B, s)
    found = torch.cat([logits, semi], dim=1).log_softmax(dim=1)
    soft = (targets.weights * found[:, len(logits) :].masked_fill(targets.weights == 0, 0)).sum(dim=1)
    to_image = -(found.diagonal() + soft).mean()
    to_query = -logits.log_softmax(dim=0).diagonal().mean()
    return (to_image + to_query) / 2


def cosines(views: AdaptedBatch, images: Tensor) -> Tensor:
    """cos(q̂_i, f_i(x)), (B, n), for images (n, E) that all queries share or (B, n, E) of each query's own."""
    rank, count = views.left.shape[2], images.shape[-2]
    step = max(1, PIECE // max(1, count * rank))
    pieces = []
    for at in range(0, len(views.queries), step):
        rows = slice(at, at + step)
        some = AdaptedBatch(views.queries[rows], views.left[rows], views.right[rows], views.identity)
        pieces.append((some, images if images.ndim == 2 else images[rows]))
    if len(pieces) == 1 or not torch.is_grad_enabled():
        return torch.cat([_cosines(*piece) for piece in pieces])
    # Kept for the backward pass, the pieces would be [B, B, r] again, and several times.
    return torch.cat([checkpoint(_cosines, *piece, use_reentrant=False) for piece in pieces])


def _cosines(views: AdaptedBatch, images: Tensor) -> Tensor:
    axes = "ne" if images.ndim == 2 else "cne"
    selected = einsum(f"{axes},cer->cnr", images, views.left)
    pulled = einsum("cer,ce->cr", views.right, views.queries)
    products = einsum("cnr,cr->cn", selected, pulled)
    squares = ((selected @ (views.right.mT @ views.right)) * selected).sum(dim=-1)
    if views.identity:
        products = products + views.identity * einsum(f"{axes},ce->cn", images, views.queries)
        across = (selected * einsum(f"{axes},cer->cnr", images, views.right)).sum(dim=-1)
        squares = squares + 2 * views.identity * across + views.identity**2 * images.square().sum(dim=-1)
    return products / squares.clamp_min(TINY).sqrt()
