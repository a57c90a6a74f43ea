"""How much memory a batch takes, estimated before it is allocated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from eyespot.adapters.quari.config import Config
from eyespot.adapters.quari.files import shapes
from eyespot.adapters.quari.training.settings import TrainingSettings
from eyespot.models.torch_models import free_on

if TYPE_CHECKING:
    import torch

PIECE = 1 << 24  # numbers of [queries, images, r] that the loss has at once
FEW = 2 << 30  # bytes of activations below which they are stored, not computed again
KEPT = 18  # numbers a layer keeps for each channel of each token: norms, heads, the wide inner layer twice
LOSS = 8  # arrays of the size of a piece that its products and their gradients take


class MemoryEstimate(NamedTuple):
    """Bytes: weights with gradients and AdamW's two moments; the layers' activations; factors of maps; the loss."""

    weights: int
    activations: int
    factors: int
    loss: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


def needed(config: Config, settings: TrainingSettings, width: int = 4) -> MemoryEstimate:
    """An estimate for one batch; `width` is the bytes of an activation, 2 in half precision."""
    rank, batch = config.low_rank_dim, settings.batch
    weights = sum(math.prod(shape) for name, shape in shapes(config).items() if not name.startswith("pos_"))
    decoded = 2 * batch * rank * (3 * config.hidden_dim * width + 6 * config.embedding_dim * 4)
    piece = min(batch * batch * rank, PIECE)
    every = _all(config, settings, width)
    layers = config.num_steps * config.num_layers
    # Of each layer what it was given, and of one all that it makes.
    activations = every // KEPT + every // layers if recomputes(config, settings, width) else every
    return MemoryEstimate(16 * weights, activations, decoded, 4 * LOSS * piece)


def recomputes(config: Config, settings: TrainingSettings, width: int = 4, room: int = FEW) -> bool:
    """Whether the layers' activations are computed again in the backward pass, for want of `room` in bytes."""
    if settings.activations == "auto":
        return _all(config, settings, width) > room
    return settings.activations == "recomputed"


def room_on(device: torch.device, config: Config, settings: TrainingSettings, width: int) -> int:
    """Bytes that activations may take on a device: most of what a card has free beside the rest of a batch."""
    if device.type != "cuda":
        return FEW
    rest = needed(config, settings, width)._replace(activations=0).total
    return max(FEW, int(0.8 * free_on(device)) - rest)


def _all(config: Config, settings: TrainingSettings, width: int) -> int:
    copies = 2 if config.dropout or settings.token_drop else 1
    tokens = settings.batch * (1 + copies * config.low_rank_dim)
    return config.num_steps * config.num_layers * tokens * config.hidden_dim * KEPT * width
