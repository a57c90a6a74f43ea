"""Small QuARI checkpoints with weights drawn by a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eyespot.adapters.quari import AdapterCard, Config, FrozenComparison
from eyespot.adapters.quari.files import save, shapes


def weights_of(config: Config, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes(config).items()}


HARMFUL = FrozenComparison(0.517, 0.840, (-0.41, -0.24), 0.0002, 0.3, 50, 60, 544)


def checkpoint(folder: Path, dim: int, encoder: str | None = None, found: FrozenComparison | None = None) -> Path:
    """A checkpoint for vectors of so many components, said to be of an encoder; with a card if it was compared."""
    config = Config(dim, low_rank_dim=3, hidden_dim=16, num_steps=2, nhead=4, num_layers=2, feature_extractor=encoder)
    card = None if found is None else AdapterCard(encoder, 475, 100, "0" * 16, "released", 10, 0, "0.1.0", found)
    save(folder, config, weights_of(config), card)
    return folder
