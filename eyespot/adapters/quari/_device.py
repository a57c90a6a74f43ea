"""First passes where torch computes, such as a graphics card: the bounds of `Plain`, with the vectors kept there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._ceilings import Ceilings, bounded, columns_of
from eyespot.adapters.quari._directions import Directions
from eyespot.kernels.rows import Ids, RowBlocks

if TYPE_CHECKING:
    import torch

_CHUNK = 1 << 17  # rows looked at together
_SPARED = 0.8  # of the free memory of a card that vectors may take; what does not fit is sent each time


class OnDevice:
    """Over the vectors themselves, in float32, on a device that has float64 too."""

    def __init__(
        self, rows: RowBlocks, lengths: NDArray[np.float32], device: torch.device, keep: bool | None = None
    ) -> None:
        """keep: whether the vectors stay on the device; None if they fit there."""
        import torch

        self._rows, self._device, self._torch = rows, device, torch
        self._lengths = torch.from_numpy(lengths).to(device, torch.float64)
        if keep is None:
            if self._device.type != "cuda":
                keep = False  # a copy in the same memory would gain nothing
            else:
                free, _ = self._torch.cuda.mem_get_info(self._device)
                keep = sum(block.nbytes for block in self._rows.blocks) <= _SPARED * free
        else:
            keep = keep
        self._kept = [self._sent(block) for block in rows.blocks] if keep else None

    def ceilings(self, directions: Sequence[Directions], rows: Ids | None) -> Ceilings:
        """For each query (m, rows); all rows if None, else these in ascending order."""
        blocks = [columns_of(one) for one in directions]
        found = np.empty((len(directions), len(self._rows) if rows is None else len(rows)), np.float32)
        with _plain_float32(self._torch):
            for start, vectors, lengths in self._chunks(rows):
                for j, (one, (columns, spans)) in enumerate(zip(directions, blocks, strict=True)):
                    products = (vectors @ self._sent(columns.T.astype(np.float32))).double()
                    limits = bounded(one, products, lengths, self._sent(spans), self._torch)
                    found[j, start : start + len(lengths)] = limits.float().cpu().numpy()
        return found

    def _chunks(self, rows: Ids | None) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """Where each chunk begins in the answer, its vectors in float32, and their lengths."""
        cuts = self._rows.starts if rows is None else np.searchsorted(rows, self._rows.starts)
        for part, (first, last) in enumerate(zip(cuts.tolist(), cuts[1:].tolist(), strict=False)):
            for start in range(first, last, _CHUNK):
                chosen: slice | Ids = slice(start, min(start + _CHUNK, last))
                chosen = chosen if rows is None else rows[chosen]
                vectors_first = int(self._rows.starts[part])
                within = (
                    slice(chosen.start - vectors_first, chosen.stop - vectors_first)
                    if isinstance(chosen, slice)
                    else chosen - vectors_first
                )
                if self._kept is None:
                    vectors = self._sent(self._rows.blocks[part][within]).float()
                else:
                    vectors = self._kept[part][within].float()
                yield start, vectors, self._lengths[chosen]

    def _sent(self, array: NDArray[Any]) -> torch.Tensor:
        # A copy: torch wants writable memory, and mapped files are not.
        return self._torch.tensor(np.asarray(array)).to(self._device)


@contextmanager
def _plain_float32(torch: Any) -> Iterator[None]:
    """Products of float32 numbers as such: the shorter numbers that cards may take instead would pass the bounds."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
