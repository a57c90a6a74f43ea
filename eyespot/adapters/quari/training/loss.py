"""Noise on queries, and the symmetric contrastive loss, each similarity under the map of its query, no image mapped.

x ↦ i·x + (x L) Rᵀ is needed only in its products: the numerator is i·x·q̂ + (x L)·(Rᵀ q̂), the squared norm
i·|x|² + 2i·(x L)·(x R) + (x L)(Rᵀ R)(x L)ᵀ. So a batch of B takes [B, B, r] numbers at most, a piece at a time, and
never [B, B, E].
"""

from __future__ import annotations

from collections.abc import Callable
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
    0 where there is none. hidden: (B, B), True where image j is not a negative of query i: another caption's copy of
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
    to_image, logits = _to_image(views, targets, temperature)
    to_query = -logits.log_softmax(dim=0).diagonal().mean()
    return (to_image + to_query) / 2


def linear(views: AdaptedBatch, targets: Targets, temperature: float) -> Tensor:
    """The same with the image-to-query term of the released code, with which the released weights were trained.

    The term is minus the sum of cos(q̂_j, f_i(x_j)) over the batch / (B · E · τ): no contrast, and each pair under the
    maps of all queries. The code sums over images where it means components.
    """
    to_image, _ = _to_image(views, targets, temperature)
    count, dim = targets.images.shape
    crossed = _in_pieces(views, targets.images, count, views.queries)  # (maps, pairs)
    to_query = -crossed.sum() / (count * dim * temperature)
    return (to_image + to_query) / 2


def paired_maps(views: AdaptedBatch, targets: Targets, temperature: float) -> Tensor:
    """The loss of the public code of 27 May 2025: image j is mapped by its own query's map, whichever query scores it.

    So a batch needs B mapped images and no [B, B, r]; semi-positives have no part in it.
    """
    selected = einsum("ne,ner->nr", targets.images, views.left)
    mapped = views.identity * targets.images + einsum("nr,ner->ne", selected, views.right)
    mapped = mapped / mapped.square().sum(dim=1, keepdim=True).clamp_min(TINY).sqrt()
    logits = (views.queries @ mapped.T / temperature).masked_fill(targets.hidden, -torch.inf)
    both = logits.log_softmax(dim=1).diagonal() + logits.log_softmax(dim=0).diagonal()
    return -both.mean() / 2


def _to_image(views: AdaptedBatch, targets: Targets, temperature: float) -> tuple[Tensor, Tensor]:
    """The loss of the queries' direction, and the logits (B, B)."""
    logits = cosines(views, targets.images) / temperature
    logits = logits.masked_fill(targets.hidden, -torch.inf)
    semi = (cosines(views, targets.semi) / temperature).masked_fill(targets.weights == 0, -torch.inf)  # (B, s)
    found = torch.cat([logits, semi], dim=1).log_softmax(dim=1)
    soft = (targets.weights * found[:, len(logits) :].masked_fill(targets.weights == 0, 0)).sum(dim=1)
    return -(found.diagonal() + soft).mean(), logits


Loss = Callable[[AdaptedBatch, Targets, float], Tensor]
OF_NAME: dict[str, Loss] = {"symmetric": symmetric, "linear": linear, "paired-maps": paired_maps}


def cosines(views: AdaptedBatch, images: Tensor) -> Tensor:
    """cos(q̂_i, f_i(x)), (B, n), for images (n, E) that all queries share or (B, n, E) of each query's own."""
    return _in_pieces(views, images, images.shape[-2], None)


def _in_pieces(views: AdaptedBatch, images: Tensor, count: int, paired: Tensor | None) -> Tensor:
    step = max(1, PIECE // max(1, count * views.left.shape[2]))
    pieces = []
    for at in range(0, len(views.queries), step):
        rows = slice(at, at + step)
        some = AdaptedBatch(views.queries[rows], views.left[rows], views.right[rows], views.identity)
        pieces.append((some, images if images.ndim == 2 else images[rows], paired))
    if len(pieces) == 1 or not torch.is_grad_enabled():
        return torch.cat([_cosines(*piece) for piece in pieces])
    # Kept for the backward pass, the pieces would be [B, B, r] again, and several times.
    return torch.cat([checkpoint(_cosines, *piece, use_reentrant=False) for piece in pieces])


def _cosines(views: AdaptedBatch, images: Tensor, paired: Tensor | None) -> Tensor:
    """Of each map's own query with all images; or, of `paired` queries (n, E), of each image with its own."""
    axes = "ne" if images.ndim == 2 else "cne"
    selected = einsum(f"{axes},cer->cnr", images, views.left)
    if paired is None:
        products = einsum("cnr,cr->cn", selected, einsum("cer,ce->cr", views.right, views.queries))
    else:
        products = einsum("cnr,cnr->cn", selected, einsum("ne,cer->cnr", paired, views.right))
    squares = ((selected @ (views.right.mT @ views.right)) * selected).sum(dim=-1)
    if views.identity:
        plain = einsum(f"{axes},ce->cn", images, views.queries) if paired is None else (images * paired).sum(dim=-1)
        products = products + views.identity * plain
        across = (selected * einsum(f"{axes},cer->cnr", images, views.right)).sum(dim=-1)
        squares = squares + 2 * views.identity * across + views.identity**2 * images.square().sum(dim=-1)
    return products / squares.clamp_min(TINY).sqrt()


def noisy(queries: Tensor, scale: float, generator: torch.Generator, width: int = 1) -> Tensor:
    """Queries (n, E) with noise q + λ·u·ε, by which a map trained on texts serves pictures (LinCIR; section 3.3).

    u ~ U(0, 1), ε ~ N(0, I); λ is `scale`. The sum is not made unit again. `width` is how many u a query has: 1, or E,
    one for each component, as the public code of May 2025 drew them. Drawn on the CPU, so that a seed means the same
    noise on every device.
    """
    if not scale:
        return queries
    share = torch.rand(len(queries), width, generator=generator)
    drawn = torch.randn(queries.shape, generator=generator)
    return queries + scale * (share * drawn).to(queries)
