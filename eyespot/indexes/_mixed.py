"""A first pass where some blocks have codes and others have none: each block is scanned by the best that it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._batches import QueryBatch
from eyespot.indexes._coded import CodedProducts
from eyespot.indexes._plain import PlainProducts
from eyespot.kernels.codes import Codes
from eyespot.kernels.rows import RowBlocks, Shortlist, joined
from eyespot.types import Mask


class MixedProducts:
    """The codes of the blocks that have some, and the vectors of those that have none.

    codes: of each block, None for one without.
    """

    def __init__(self, rows: RowBlocks, codes: Sequence[Codes | None], threads: int | None) -> None:
        self.codes = codes
        coded = [at for at, part in enumerate(codes) if part is not None]
        self._coded = CodedProducts([part for part in codes if part is not None], threads, rows.starts[coded])
        self._plain = PlainProducts(rows, [at for at, part in enumerate(codes) if part is None])

    def scan(self, queries: NDArray[np.float32], k: int, mask: Mask | None) -> list[Shortlist]:
        """What may be among the k best of each query."""
        return self.scan_each(QueryBatch.of(queries, k, mask))

    def scan_each(self, batch: QueryBatch) -> list[Shortlist]:
        """What may be among the best of each query, of which each has its own k and mask."""
        both = zip(self._coded.scan_each(batch), self._plain.scan_each(batch), batch.ks.tolist(), strict=True)
        return [joined((coded, plain)).promising(k) for coded, plain, k in both]
