"""Where a vision transformer sees something: what each patch adds to a score.

What a patch adds is the score's derivative by the tokens that enter the last block, times how they differ from the mean
patch. The mean over all patches is taken off, since each also changes by how much the model normalises it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.types import Heat, Vectors

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PatchGrid:
    """The last block of a tower, how many tokens stand before those of patches, and the grid and box of these.

    `box` is the part of the picture that the grid covers: left, top, right, bottom as shares of its width and height.
    """

    block: Any
    prefix: int
    rows: int
    columns: int
    box: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)


def patch_heat(tower: Callable[[Any], torch.Tensor], pixels: torch.Tensor, grid: PatchGrid, query: Vectors) -> Heat:
    """What each patch adds to the score of a query (dim,) for one picture (1, ...)."""
    import torch

    entered: list[Any] = []

    def enter(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tokens = (given[0] if given else named["hidden_states"]).detach().requires_grad_()
        entered.append(tokens)
        return ((tokens, *given[1:]), named) if given else (given, {**named, "hidden_states": tokens})

    hook = grid.block.register_forward_pre_hook(enter, with_kwargs=True)
    try:
        with torch.enable_grad():
            vector = torch.nn.functional.normalize(tower(pixels).float(), dim=-1)[0]  # (dim,)
            score = vector @ torch.from_numpy(np.ascontiguousarray(query)).to(vector.device)
            (slope,) = torch.autograd.grad(score, entered[0])
    finally:
        hook.remove()
    width = slope.shape[-1]
    count = grid.rows * grid.columns
    tokens, slopes = (
        one.detach().float().reshape(-1, width)[grid.prefix : grid.prefix + count] for one in (entered[0], slope)
    )
    lost = (slopes * (tokens - tokens.mean(0))).sum(-1)  # (rows · columns,)
    values = (lost - lost.mean()).reshape(grid.rows, grid.columns)
    return Heat(values.cpu().numpy().astype(np.float32), grid.box)


def centre_crop(size: tuple[int, int], scale: float, crop: tuple[int, int]) -> tuple[float, float, float, float]:
    """The box of a crop (width, height) from the middle of a picture (width, height) that was first scaled."""
    width, height = (cut / (edge * scale) for cut, edge in zip(crop, size, strict=True))
    return ((1 - width) / 2, (1 - height) / 2, (1 + width) / 2, (1 + height) / 2)
