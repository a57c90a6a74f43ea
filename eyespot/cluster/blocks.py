"""Blocks of vectors where workers find them: mapped files on a disk that all machines see, or Ray's shared memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import ray

from eyespot.cluster.wire import Mapped, map_file, mapping_of
from eyespot.kernels.codes import Block, Codes, current_codes

_WHOLE = 1 << 17  # rows; a block of fewer is given to one worker


@dataclass(frozen=True)  # a named tuple could not be pickled, because its length is the number of rows
class Piece:
    """Rows from `start` to `stop` of an array, and where that lies; `codes` is the prefix of its int8 codes on disk."""

    source: Any  # a `Mapped` file, or a reference to Ray's shared memory
    start: int
    stop: int
    codes: str = ""

    def __len__(self) -> int:
        return self.stop - self.start


class Placed(NamedTuple):
    """A piece, and the number of its first row in the gallery."""

    piece: Piece
    first: int


def shared_out(
    blocks: Sequence[Block],
    workers: int,
    codes: Sequence[Codes | None] | None = None,
    before: Sequence[Sequence[Sequence[Placed]]] = (),
) -> list[list[Placed]]:
    """What each worker holds of the rows of all blocks, in order; about as many rows each.

    before: what each worker holds already, of one gallery or several, the latest first. It keeps what it has; new
    blocks go to those with the fewest rows.
    """
    prefixes = [os.path.abspath(one.prefix) if one and one.prefix else "" for one in codes or [None] * len(blocks)]
    sources = list(zip(blocks, map(mapping_of, blocks), prefixes, strict=True))
    held = _holders(before)
    if not any(source in held for _, source, _ in sources):  # one run of rows each; fewer runs where rows are few
        rows = sum(map(len, blocks))
        cuts = np.linspace(0, rows, min(workers, rows) + 1).astype(int).tolist()
        return [list(_run(sources, span)) for span in pairwise(cuts)]
    shares: list[list[Placed]] = [[] for _ in range(workers)]
    firsts = [0, *accumulate(map(len, blocks))]
    for (_, source, prefix), first in zip(sources, firsts, strict=False):
        for at, start, stop in held.get(source, ()):
            assert source is not None
            shares[at].append(Placed(Piece(source, start, stop, prefix), first + start))
    for fresh, first in zip(sources, firsts, strict=False):
        if fresh[1] not in held:
            _add(shares, fresh, first, -(-firsts[-1] // workers))
    return [sorted(share, key=lambda placed: placed.first) for share in shares]


def _holders(before: Sequence[Sequence[Sequence[Placed]]]) -> dict[Mapped | None, list[tuple[int, int, int]]]:
    """For each file the workers that hold its rows: number, start and stop; all rows of it, each once."""
    found: dict[Mapped | None, list[tuple[int, int, int]]] = {}
    for shares in before:
        blocks: dict[tuple[Mapped, int], list[tuple[int, int, int]]] = {}  # a gallery may have a file as two blocks
        for at, share in enumerate(shares):
            for piece, first in share:
                if isinstance(piece.source, Mapped):
                    spans = blocks.setdefault((piece.source, first - piece.start), [])
                    spans.append((at, piece.start, piece.stop))
        for (source, _), spans in blocks.items():
            found.setdefault(source, spans)
    return found


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


_Source = tuple[Block, Mapped | None, str]


def _run(sources: Sequence[_Source], span: tuple[int, int]) -> Iterator[Placed]:
    first = 0
    for block, mapped, codes in sources:
        start, stop = (min(max(row - first, 0), len(block)) for row in span)
        if start < stop:
            yield Placed(_piece(block, mapped, (start, stop), codes), first + start)
        first += len(block)


def _add(shares: list[list[Placed]], source: _Source, first: int, room: int) -> None:
    """Give a block to the workers with the fewest rows, a large one in parts: each gets up to `room` rows in all."""
    (block, mapped, codes), start = source, 0
    while start < len(block):
        loads = [sum(len(piece) for piece, _ in share) for share in shares]
        at = int(np.argmin(loads))
        count = len(block) - start
        count = count if count <= _WHOLE else min(count, max(_WHOLE, room - loads[at]))
        shares[at].append(Placed(_piece(block, mapped, (start, start + count), codes), first + start))
        start += count


def _piece(block: Block, source: Mapped | None, span: tuple[int, int], codes: str = "") -> Piece:
    if source is not None:
        return Piece(source, *span, codes)
    rows = np.ascontiguousarray(block[slice(*span)])
    return Piece(ray.put(rows), 0, len(rows))
