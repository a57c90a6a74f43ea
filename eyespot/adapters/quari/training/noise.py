"""Noise on queries that lets a map trained on texts serve pictures: q + λ·u·ε (LinCIR; QuARI, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor


def noisy(queries: Tensor, scale: float, generator: torch.Generator) -> Tensor:
    """Queries (n, E) with noise; u ~ U(0, 1) is one number a query, ε ~ N(0, I). The sum is not made unit again.

    Drawn on the CPU, so that a seed means the same noise on every device.
    """
    if not scale:
        return queries
    share = torch.rand(len(queries), 1, generator=generator)
    drawn = torch.randn(queries.shape, generator=generator)
    return queries + scale * (share * drawn).to(queries)
