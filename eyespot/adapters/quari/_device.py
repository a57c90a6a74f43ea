"""Search where torch computes, such as a graphics card, which keeps the vectors: the rows that can be among the best.

A card computes the whole formula for all rows in the time it needs to read them a few times, so there are no cheaper
passes. It does so in float32, then in float64 for the rows that float32 cannot rule out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._formula import Formula, ScoreBounds
from eyespot.adapters.quari._tasks import TIE
from eyespot.kernels.rows import Ids, RowBlocks
from eyespot.models.torch_models import free_on
from eyespot.types import Mask

if TYPE_CHECKING:
    import torch

_LEAST, _MOST = 1 << 24, 1 << 28  # numbers looked at together: a card waits for the start of each of many small works
_TEMPORARY = 32  # bytes of temporary numbers for each of them
_SPARED = 0.8  # of the free memory of a card that vectors may take
_TURN = Lock()  # the precision of products is one for all threads


class NoRoom(Exception):
    """A card has no memory for the vectors, or for a search of them."""


class OnDevice:
    """The vectors and their lengths, on a device that has float64 too; one search at a time. `NoRoom` if it is full."""

    def __init__(self, rows: RowBlocks, lengths: NDArray[np.float32], device: torch.device) -> None:
        import torch

        self._torch, self._device = torch, device
        if device.type == "cuda" and sum(block.nbytes for block in rows.blocks) > _SPARED * free_on(device):
            raise NoRoom
        with _no_room(torch):
            self._lengths = torch.from_numpy(lengths).to(device, torch.float64)
            # A copy: torch wants writable memory, and mapped files are not.
            blocks = [torch.tensor(np.asarray(block), device=device) for block in rows.blocks]
        self._blocks = list(zip(rows.starts.tolist(), blocks, strict=False))

    def candidates(self, formula: Formula, k: int, mask: Mask | None = None) -> Ids:
        """The rows that can be among the k best of those let through, ascending; hardly more than k.

        Rows that are zero or not finite are among them.
        """
        torch = self._torch
        with _TURN, torch.inference_mode(), _plain_float32(torch), _no_room(torch):
            allowed = None if mask is None else torch.tensor(mask, device=self._device)
            parts = list(self._between(formula, np.float32, None))
            rows = self._reaching(parts, k, allowed)
            parts = list(self._between(formula, np.float64, rows))
            numbers: Ids = rows[self._reaching(parts, k, None)].cpu().numpy()
        return numbers

    def _reaching(self, parts: list[ScoreBounds], k: int, allowed: Any) -> Any:
        """The places of those that k others do not surely beat."""
        low, high = (self._torch.cat(column) for column in zip(*parts, strict=True))
        if allowed is not None:
            low, high = (bound.masked_fill(~allowed, -np.inf) for bound in (low, high))
        floor = low.topk(k).values[-1] - TIE
        return (high >= floor).nonzero()[:, 0]

    def _between(self, formula: Formula, kind: type, rows: Any) -> Iterator[ScoreBounds]:
        """What the scores of the rows lie between, in their order, chunk by chunk; of all rows if None."""
        parts = [
            self._torch.from_numpy(np.ascontiguousarray(part, kind)).to(self._device)
            for part in (*formula.target, formula.left)
        ]
        free = 0 if self._device.type != "cuda" else free_on(self._device)
        together = max(_LEAST, min(_MOST, free // _TEMPORARY))
        for vectors, lengths in self._chunks(rows, max(1, together // formula.left.shape[0])):
            yield formula.between(vectors.to(parts[0].dtype), lengths, parts, self._torch)

    def _chunks(self, rows: Any, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The vectors and lengths of the rows, `step` at a time."""
        for first, block in self._blocks:
            lengths = self._lengths[first : first + len(block)]
            places = None if rows is None else rows[(rows >= first) & (rows < first + len(block))] - first
            for at in range(0, len(block if places is None else places), step):
                some = slice(at, at + step) if places is None else places[at : at + step]
                yield block[some], lengths[some]


@contextmanager
def _no_room(torch: Any) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # of which torch.OutOfMemoryError is one, and cuBLAS has another
        if not any(words in str(error) for words in ("out of memory", "ALLOC_FAILED", "NOT_INITIALIZED")):
            raise
        raise NoRoom from error


@contextmanager
def _plain_float32(torch: Any) -> Iterator[None]:
    """Products of float32 numbers as such: the shorter numbers that cards may take instead would pass the bounds."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
