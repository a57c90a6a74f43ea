"""Blocks of vectors where workers find them: mapped files on a disk that all machines see, or Ray's shared memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray

from eyespot.cluster.wire import Mapped, map_file, mapping_of
from eyespot.kernels.codes import Block, Codes, current_codes

_LEAST, _MOST = 1 << 12, 1 << 17  # rows of a piece


@dataclass(frozen=True)  # a named tuple could not be pickled, because its length is the number of rows
class Piece:
    """Rows from `start` to `stop` of an array, and where that lies; `codes` is the prefix of its int8 codes on disk.

    `first` is the number of its first row in a gallery; the same rows in another gallery are the same piece.
    """

    source: Any  # a `Mapped` file, or a reference to Ray's shared memory
    start: int
    stop: int
    codes: str = ""
    first: int = field(default=0, compare=False)

    def __len__(self) -> int:
        return self.stop - self.start


def shared_out(blocks: Sequence[Block], workers: int, codes: Sequence[Codes | None] | None = None) -> list[list[Piece]]:
    """What each worker holds of the rows of all blocks, in order: pieces, each for who has the fewest rows so far.

    So in a gallery that grew each worker keeps what it holds.
    """
    shares: list[list[Piece]] = [[] for _ in range(workers)]
    loads, first = [0] * workers, 0
    for block, its_codes in zip(blocks, codes or [None] * len(blocks), strict=True):
        source, prefix = mapping_of(block), its_codes.prefix if its_codes else None
        size = min(max(_LEAST, -(-len(block) // workers)), _MOST)
        for start in range(0, len(block), size):
            stop, at = min(start + size, len(block)), loads.index(min(loads))
            if source is None:
                piece = Piece(ray.put(np.ascontiguousarray(block[start:stop])), 0, stop - start, first=first + start)
            else:
                piece = Piece(source, start, stop, os.path.abspath(prefix) if prefix else "", first + start)
            shares[at].append(piece)
            loads[at] += stop - start
        first += len(block)
    return shares


def opened(piece: Piece) -> Block:
    """The rows of a piece, (rows, dim), mapped; `EyespotError` on a machine that does not see its file."""
    source = piece.source
    block = map_file(source) if isinstance(source, Mapped) else np.asarray(ray.get(source))
    return block[piece.start : piece.stop]


def codes_of(piece: Piece) -> Codes | None:
    """The codes of a piece, mapped; None without any that are up to date."""
    if not piece.codes or not isinstance(piece.source, Mapped):
        return None
    block = map_file(piece.source)
    codes = current_codes(piece.codes, block)
    return codes and codes.part(block, slice(piece.start, piece.stop))
