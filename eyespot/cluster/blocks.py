"""Blocks of vectors where workers find them: mapped files on a disk that all machines see, or Ray's shared memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import ray

from eyespot.cluster.calls import host
from eyespot.kernels.codes import Block, Codes, current_codes, evenly
from eyespot.storage.digests import BLAKE2B
from eyespot.types import EyespotError

_SEALED = 16  # rows by which a worker knows that its file is the one that is meant


class Mapped(NamedTuple):
    """An array (rows, dim) in a file."""

    path: str
    kind: str  # of its numbers
    shape: tuple[int, int]
    offset: int  # bytes
    seal: bytes


class Stored(NamedTuple):
    """An array (rows, dim) in Ray's shared memory."""

    reference: Any


@dataclass(frozen=True)  # a named tuple could not be pickled, because its length is the number of rows
class Piece:
    """Rows from `start` to `stop` of an array, and where that lies; `codes` is the prefix of its int8 codes on disk."""

    source: Mapped | Stored
    start: int
    stop: int
    codes: str = ""

    def __len__(self) -> int:
        return self.stop - self.start


def runs(blocks: Sequence[Block], workers: int, codes: Sequence[Codes | None] | None = None) -> list[list[Piece]]:
    """The rows of all blocks, in order, as one run a worker, of about the same length; fewer where rows are few."""
    rows = sum(len(block) for block in blocks)
    cuts = np.linspace(0, rows, min(workers, rows) + 1).astype(int).tolist()
    mapped = [_mapping(block) for block in blocks]
    prefixes = (
        [os.path.abspath(one.prefix) if one and one.prefix else "" for one in codes] if codes else [""] * len(blocks)
    )
    return [list(_run(blocks, list(zip(mapped, prefixes, strict=True)), span)) for span in pairwise(cuts)]


def whole(block: Block) -> Piece:
    """All rows of one block."""
    return _piece(block, _mapping(block), (0, len(block)))


def opened(piece: Piece) -> Block:
    """The rows of a piece, (rows, dim), mapped; `EyespotError` on a machine that does not see its file."""
    source = piece.source
    block = _map(source) if isinstance(source, Mapped) else np.asarray(ray.get(source.reference))
    return block[piece.start : piece.stop]


def coded(pieces: Sequence[Piece]) -> list[Codes | None] | None:
    """The codes of each piece, mapped, None for one without any that are up to date; None if no piece has some."""
    found = [_codes_of(piece) for piece in pieces]
    return found if any(codes is not None for codes in found) else None


def _codes_of(piece: Piece) -> Codes | None:
    if not piece.codes or not isinstance(piece.source, Mapped):
        return None
    block = _map(piece.source)
    codes = current_codes(piece.codes, block)
    return codes and codes.part(block, slice(piece.start, piece.stop))


def _run(
    blocks: Sequence[Block], sources: Sequence[tuple[Mapped | None, str]], span: tuple[int, int]
) -> Iterator[Piece]:
    first = 0
    for block, (mapped, codes) in zip(blocks, sources, strict=True):
        start, stop = (min(max(row - first, 0), len(block)) for row in span)
        if start < stop:
            yield _piece(block, mapped, (start, stop), codes)
        first += len(block)


def _piece(block: Block, source: Mapped | None, span: tuple[int, int], codes: str = "") -> Piece:
    if source is not None:
        return Piece(source, *span, codes)
    rows = np.ascontiguousarray(block[slice(*span)])
    return Piece(Stored(ray.put(rows)), 0, len(rows))


def _mapping(block: Block) -> Mapped | None:
    """The file of a block that is all of a mapped array; None for other arrays."""
    base: Any = block
    while base is not None and not (isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap)):
        base = getattr(base, "base", None)
    if base is None or base.filename is None or _layout(base) != _layout(block):
        return None
    if base.mode != "r":
        base.flush()
    return Mapped(os.path.abspath(base.filename), block.dtype.str, block.shape, int(base.offset), _seal(block))


def _layout(block: Block) -> tuple[Any, ...]:
    """Where an array begins, and all that says which of the numbers from there on are its."""
    return block.ctypes.data, block.dtype.str, block.shape, block.strides, block.flags.c_contiguous


def _map(source: Mapped) -> Block:
    try:
        block: Block = np.memmap(source.path, np.dtype(source.kind), "r", source.offset, source.shape)
    except (OSError, ValueError) as error:
        raise EyespotError(f"{source.path} cannot be read on {host()} ({error}); {_WAY_OUT}") from error
    if _seal(block) != source.seal:
        raise EyespotError(f"{source.path} holds other vectors on {host()}; {_WAY_OUT}")
    return block


_WAY_OUT = "keep the gallery on a disk that all machines of the cluster see, at the same path"


def _seal(block: Block) -> bytes:
    return BLAKE2B(np.ascontiguousarray(block[evenly(len(block), _SEALED)]).tobytes()).digest()
