"""Adapted search through a gallery some rows at a time: the same answers as all at once, ties and masks included."""

from __future__ import annotations

import numpy as np
import pytest

from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.types import AdaptedQuery, Mask

ROWS, DIM = 3000, 32


def vectors() -> np.ndarray:
    """Unit vectors; the last thousand are the first once more."""
    made = np.random.default_rng(0).standard_normal((2000, DIM)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return np.concatenate([made, made[:1000]])


def view(seed: int) -> AdaptedQuery:
    rng = np.random.default_rng(seed)
    query, left, right = (rng.standard_normal(shape) for shape in (DIM, (DIM, 4), (DIM, 4)))
    parts = (part / np.linalg.norm(part) for part in (query, left, right))
    return AdaptedQuery(*(part.astype(np.float32) for part in parts), 1.0)


def answers(window: int, mask: Mask | None, patience: float) -> tuple[list[list[int]], np.ndarray]:
    index = AdaptedIndex([vectors()[:1700], vectors()[1700:]], patience=patience, small=0)
    index.window = window
    found = index.search([view(seed) for seed in range(5)], 40, mask)
    return found.rows.tolist(), found.scores


@pytest.mark.parametrize("patience", [0, float("inf")], ids=["coded", "plain"])
@pytest.mark.parametrize("let", ["all", "half", "none of the first window"])
@pytest.mark.parametrize("window", [600, 1111])
def test_a_window_changes_no_answer(window: int, let: str, patience: float) -> None:
    masks = {"all": None, "half": np.arange(ROWS) % 2 == 0, "none of the first window": np.arange(ROWS) > 1200}
    rows, scores = answers(window, masks[let], patience)
    whole_rows, whole_scores = answers(ROWS, masks[let], patience)
    assert rows == whole_rows and np.allclose(scores, whole_scores, rtol=0, atol=1e-7)
