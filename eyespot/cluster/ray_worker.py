"""One worker of a search on Ray: the rows that it holds, mapped, and what searches them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import ray
from numpy.typing import NDArray

from eyespot.adapters.quari import scoring
from eyespot.cluster.blocks import Piece, codes_of, opened
from eyespot.cluster.calls import host
from eyespot.gallery.files import let_open, need_open
from eyespot.indexes import exact
from eyespot.kernels.codes import MAPPED, Block, Codes
from eyespot.kernels.rows import Ids, Reals
from eyespot.types import AdaptedQuery, ScanRequest

Ranked = tuple[Ids, Reals]  # rows and scores, (queries, k) both
_OpenPiece = tuple[Block, Codes | None]  # a piece with its vectors and their codes, mapped or made
Bits = NDArray[np.uint8] | None  # a mask, eight rows a byte; None lets all through
GALLERIES = 6  # that workers hold at once: several spaces, each as it is now and as it was before rows were added


class SharePlace(NamedTuple):
    """Where a worker's share is: a name, and a list of one reference to its pieces and the rows of the gallery.

    Ray follows a reference in a list only on request.
    """

    name: str
    reference: list[Any]


class RayRequest(NamedTuple):
    """One worker's request: queries (m,), plain or adapted, their k, and the mask of each, of `bits`."""

    queries: Sequence[Any]
    ks: Sequence[int]
    masks: Sequence[int]
    bits: Sequence[Bits]

    def requests(self, count: int) -> list[ScanRequest]:
        """As an index takes them, over so many rows."""
        masks = [None if one is None else np.unpackbits(one, count=count).astype(bool) for one in self.bits]
        return [
            ScanRequest(query, k, masks[mask]) for query, k, mask in zip(self.queries, self.ks, self.masks, strict=True)
        ]


class RangeActor:
    """One worker, which searches its rows under their numbers in the gallery.

    Each request says where its share is, so that one that was started again knows it as well. Pieces that
    several galleries have, such as one before and after rows were added, are open once.
    """

    def __init__(self) -> None:
        self._opened: OrderedDict[str, OpenRange] = OrderedDict()

    def pulse(self) -> str:
        """A sign of life."""
        return host()

    def hold(self, where: SharePlace) -> int:
        """Open a share before anybody asks for it; how many rows it has."""
        return len(self._open(where))

    def search(self, where: SharePlace, request: RayRequest) -> list[Ranked]:
        """The k best for each query."""
        opened = self._open(where)
        return [opened.numbered(found) for found in opened.index.ranked_each(request.requests(len(opened)))]

    def scan(self, where: SharePlace, request: RayRequest) -> list[Ranked]:
        """The k best for each adapted query."""
        opened = self._open(where)
        return [opened.numbered(found) for found in opened.scan.ranked_each(request.requests(len(opened)))]

    def rescore(self, where: SharePlace, adapted: AdaptedQuery, rows: Ids) -> Reals:
        """The scores of some rows, by their numbers in the gallery."""
        opened = self._open(where)
        return opened.scan.rescore(adapted, opened.local_rows(rows))

    def _open(self, where: SharePlace) -> OpenRange:
        if where.name not in self._opened:
            pieces, rows = ray.get(where.reference[0])
            known = {piece: its for opened in self._opened.values() for piece, its in opened.pieces().items()}
            self._opened[where.name] = OpenRange(pieces, rows, known)
            while len(self._opened) > GALLERIES:
                self._opened.popitem(last=False)
        self._opened.move_to_end(where.name)
        return self._opened[where.name]


class OpenRange:
    """A share of `rows` in all, its vectors and their codes mapped, and what searches them.

    `known` are pieces that are open.
    """

    def __init__(self, pieces: Sequence[Piece], rows: int, known: Mapping[Piece, _OpenPiece] = {}) -> None:
        fresh = [piece for piece in pieces if piece not in known]
        need_open(len(fresh))
        blocks = {piece: opened(piece) for piece in fresh}
        with_codes = let_open(MAPPED * len(fresh))
        opened_now = {piece: (blocks[piece], codes_of(piece) if with_codes else None) for piece in fresh}
        self._pieces = [known.get(piece) or opened_now[piece] for piece in pieces]
        self._given, self._blocks = pieces, [block for block, _ in self._pieces]
        codes = [held for _, held in self._pieces]
        self._codes = codes if any(part is not None for part in codes) else None
        self._firsts = np.array([piece.first for piece in pieces], np.int64)  # (pieces,)
        self._starts = np.array([*accumulate(map(len, pieces), initial=0)])  # (pieces + 1,)
        self._numbers = rows * self._blocks[0].shape[1]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def pieces(self) -> dict[Piece, _OpenPiece]:
        """What is open, with the codes that were made meanwhile."""
        made = self.index.codes if "index" in vars(self) else ()
        now = zip(self._given, self._pieces, made or [None] * len(self._pieces), strict=True)
        return {piece: (block, new or codes) for piece, (block, codes), new in now}

    @cached_property
    def index(self) -> exact.Exact:
        """Exact search over these rows."""
        return exact.Exact(self._blocks, self._codes, small=self._least(exact.SMALL))

    @cached_property
    def scan(self) -> scoring.AdaptedIndex:
        """The scan under adapted queries."""
        return scoring.AdaptedIndex(self._blocks, self._codes, small=self._least(scoring.SMALL))

    def _least(self, small: int) -> int:
        """Codes are made where one machine with the whole gallery would make them, so that scores agree in all bits."""
        return 0 if self._numbers >= small else self._numbers + 1

    def numbered(self, found: Ranked) -> Ranked:
        """What was found, under the numbers of the whole gallery."""
        rows, scores = found
        at = np.searchsorted(self._starts, rows, side="right") - 1
        return rows - self._starts[at] + self._firsts[at], scores

    def local_rows(self, rows: Ids) -> Ids:
        """Numbers of the gallery as they are here."""
        at = np.searchsorted(self._firsts, rows, side="right") - 1
        local: Ids = rows - self._firsts[at] + self._starts[at]
        return local
