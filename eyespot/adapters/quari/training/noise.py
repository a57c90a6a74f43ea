"""Noise on queries that lets a map trained on texts serve pictures: q + λ·u·ε (LinCIR; QuARI, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor


def noisy(queries: Tensor, scale: float, generator: torch.Generator, width: int = 1) -> Tensor:
    """Queries (n, E) with noise; u ~ U(0, 1), ε ~ N(0, I). The sum is not made unit again.

    `width` is how many u a query has: 1, or E, one for each component, as the public code of May 2025 drew them. Drawn
    on the CPU, so that a seed means the same noise on every device.
    """
    if not scale:
        return queries
    share = torch.rand(len(queries), width, generator=generator)
    drawn = torch.randn(queries.shape, generator=generator)
    return queries + scale * (share * drawn).to(queries)
