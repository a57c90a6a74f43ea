"""Approximate search by faiss: 4-bit product quantisation, with lists as a gallery grows; RaBitQ codes; or a graph.

    load(blocks)                                pq below 200,000 rows, ivf from there on
    load(blocks, kind="ivf", lists=2048, parts=192, probes=64, depth=1000)
    load(blocks, kind="rabitq", bits=1)         no k-means: built in a fraction of the time
    load(blocks, folder=place)                  opened if it was built there; else built there

What it names is scored again from the blocks themselves, so there is no second copy of the vectors. In a folder lie
parts of at most four million rows, each built in turn, and `layout.json`, which is written last. Codes are read into
memory as they are opened, for faiss cannot search them where they lie; a graph is mapped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.indexes._approximate import (
    LEAST,
    Approximate,
    Scored as Scored,
    divided,
    finite,
    name_of,
    refuse_others,
    widened,
)
from eyespot.kernels.codes import Block
from eyespot.kernels.rows import RowBlocks
from eyespot.rooms import needs
from eyespot.storage.atomic import flush, write_whole
from eyespot.storage.text_files import json_of
from eyespot.types import EyespotError, Mask, UsageError

KINDS = ("pq", "ivf", "rabitq", "hnsw")
LAYOUT = "layout.json"
_MANY = 200_000  # rows; from here on lists save more than they cost
_PART = 1 << 22  # rows of a file; of 768 dimensions 0.4 GB of codes
_ADDED = 1 << 16  # rows at once
_TRAINED_ON = 65_536  # rows, or 40 for every list
_FEWEST = 624  # rows; faiss wants 39 for each of 16 centroids
_SEED = 0


@dataclass(frozen=True)
class FaissShape:
    """What is built; 0: by the number of rows and dimensions.

    kind: pq reads the codes of all rows, ivf those of the nearest lists, rabitq RaBitQ codes of all rows (signs of the
    randomly rotated rest beside the mean: Gao and Long, SIGMOD 2024), hnsw walks a graph over 8-bit vectors.
    parts: 4-bit codes of a row, a multiple of 2, of pq and ivf. lists: of ivf. bits: of each number, 1 to 8, of rabitq.
    links: of each row in the graph (M), whose efConstruction is 200.
    """

    kind: str = "auto"
    parts: int = 0
    lists: int = 0
    links: int = 32
    bits: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("auto", *KINDS):
            raise UsageError(f"faiss has no kind {self.kind!r} here; there are: auto, {', '.join(KINDS)}")
        if min(self.parts, self.lists, self.links - 2) < 0 or self.parts % 2:
            counts = f"{self.parts} parts, {self.lists} lists and {self.links} links"
            raise UsageError(f"{counts} make no index; give an even number of parts, and 2 links or more")
        if not 0 <= self.bits <= 8:
            raise UsageError(f"{self.bits} bits make no code; give 1 to 8")

    def settled(self, rows: int, dim: int) -> FaissShape:
        """Every 0 replaced; only an ivf has lists. `UsageError` for more of them than rows to train them on."""
        kind = self.kind if self.kind != "auto" else "ivf" if rows >= _MANY else "pq"
        if kind == "ivf" and self.lists > max(1, rows):
            raise UsageError(f"{self.lists} lists of {rows} rows make no index; give fewer lists")
        lists = self.lists or 1 << round(math.log2(2 * math.sqrt(max(1, rows))))
        lists = lists if kind == "ivf" else 1
        if kind == "rabitq":
            return replace(self, parts=0, lists=lists, bits=self.bits or 1)
        return replace(self, kind=kind, parts=self.parts or 2 * math.ceil(max(1, dim) / 8), lists=lists, bits=0)

    @property
    def sieving(self) -> bool:
        """Whether a mask is heeded inside: a graph under a narrow one loses its way, and comes back with too few."""
        return self.kind != "hnsw"

    @property
    def complete(self) -> bool:
        """Whether the codes of all rows are read."""
        return self.kind in ("pq", "rabitq")

    @property
    def probes(self) -> int:
        """What is looked into unasked: an eighth of the lists, or 400 places of a graph."""
        return 400 if self.kind == "hnsw" else math.ceil(self.lists / 8)


def load(blocks: Sequence[Block] | Block, folder: Path | str | None = None, **options: Any) -> Approximate:
    """An approximate index over one array or several blocks; options as for `FaissShape` and, on its use, `Use`.

    UsageError for a setting that does not exist or an index of other rows; EyespotError if its files are damaged.
    """
    use, shape = divided(options, FaissShape)
    blocks = [blocks] if isinstance(blocks, np.ndarray) else list(blocks)
    place = None if folder is None else Path(folder)
    rows = RowBlocks(blocks if use.covered is None else [blocks[at] for at in use.covered])
    there = place is not None and (place / LAYOUT).is_file()
    finder = _opened(place, rows) if place is not None and there else _built(rows, shape, place)
    use = replace(use, probes=use.probes or (finder.shape.probes if finder else 1))
    return Approximate(blocks, finder if finder and finder.rows >= LEAST else None, use)


def _faiss() -> Any:
    """faiss, whose own types leave out half of it."""
    with needs("faiss"):
        faiss: Any = import_module("faiss")
    faiss.cvar.distance_compute_blas_threshold = 20  # of batches; with its default these take many times longer
    return faiss


class Parts:
    """Codes of all rows in one or several faiss indexes that share what was trained."""

    def __init__(self, parts: Sequence[Any], shape: FaissShape, width: int) -> None:
        self.shape, self._parts, self._width = shape, parts, width
        self._starts = np.cumsum([0, *(part.ntotal for part in parts)])
        self.rows = int(self._starts[-1])
        self.sieving, self.complete = shape.sieving, shape.complete

    def scored(self, queries: NDArray[np.float32], count: int, probes: int, mask: Mask | None = None) -> Scored:
        """About how near, and rows, likeliest first, -1 where there are no more."""
        wide = widened(queries, self._width)
        return likeliest([self._search(at, wide, (count, probes), mask) for at in range(len(self._parts))], count)

    def _search(self, at: int, queries: NDArray[np.float32], wanted: tuple[int, int], mask: Mask | None) -> Scored:
        start, stop = self._starts[at : at + 2].tolist()
        own = None if mask is None else np.packbits(mask[start:stop], bitorder="little")
        faiss = _faiss()
        count, probes = wanted
        if self.shape.kind == "hnsw":
            params = faiss.SearchParametersHNSW(efSearch=max(count, probes))
        else:
            probes = min(max(1, probes), self.shape.lists)
            if own is None:
                params = faiss.SearchParametersIVF(nprobe=probes)
            else:
                params = faiss.SearchParametersIVF(
                    nprobe=probes, sel=faiss.IDSelectorBitmap(stop - start, faiss.swig_ptr(own))
                )
        scores, rows = self._parts[at].search(queries, min(wanted[0], stop - start), params=params)
        return np.where(rows < 0, -np.inf, scores), np.where(rows < 0, -1, rows + start)


def likeliest(found: Sequence[Scored], count: int) -> Scored:
    """The first `count` of what several parts found, by how near they seem; of equals those of the earlier part."""
    if len(found) == 1:
        return found[0]
    scores, rows = (np.concatenate(column, axis=1) for column in zip(*found, strict=True))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)


# -- building -----------------------------------------------------------------------------------------------


def _built(rows: RowBlocks, shape: FaissShape, folder: Path | None) -> Parts | None:
    """None where there are too few rows; a folder then holds a layout and nothing else."""
    shape = shape.settled(len(rows), rows.dim)
    enough = len(rows) >= max(LEAST, _FEWEST)
    if folder is None:
        return Parts(list(_parts(rows, shape)), shape, _width(rows.dim, shape)) if enough else None
    folder.mkdir(parents=True, exist_ok=True)
    if enough:
        sizes = []
        for at, part in enumerate(_parts(rows, shape)):
            # A part on the disk; how many rows it has. `EyespotError` where there is no room for it.
            try:
                _faiss().write_index(part, str(_file(folder, at)))
            except RuntimeError as error:
                problem = f"{_file(folder, at)} cannot be written (a full disk?)"
                raise EyespotError(f"{problem}; make room and run the same line again") from error
            flush(_file(folder, at))
            sizes.append(int(part.ntotal))
    else:
        sizes = []
    layout = {**asdict(shape), "width": _width(rows.dim, shape), "rows": sizes, "vectors": name_of(rows)}
    write_whole(folder / LAYOUT, lambda file: file.write(json.dumps(layout, indent=2).encode()))
    return _opened(folder, rows)


def _parts(rows: RowBlocks, shape: FaissShape) -> Iterator[Any]:
    """Indexes of at most so many rows each; one is in memory at a time."""
    width = _width(rows.dim, shape)
    count = max(_TRAINED_ON, 40 * shape.lists)
    # So many rows at random, the same for the same vectors
    if count >= len(rows):
        sample = finite(rows.gather(np.arange(len(rows))))
    else:
        sample = finite(rows.gather(np.sort(np.random.default_rng(_SEED).choice(len(rows), count, replace=False))))
    trained = _trained(shape, widened(sample, width))
    parts = -(-len(rows) // _PART)
    ends = [len(rows) * at // parts for at in range(parts + 1)]
    for start, stop in pairwise(ends):
        part = _faiss().clone_index(trained) if parts > 1 else trained
        for lower in range(start, stop, _ADDED):
            more = finite(rows.gather(np.arange(lower, min(lower + _ADDED, stop))))
            part.add(widened(more, _width(rows.dim, shape)))
        yield part


def _trained(shape: FaissShape, sample: NDArray[np.float32]) -> Any:
    """An index without rows, trained on a sample (n, width)."""
    faiss = _faiss()
    width, inner, flat = sample.shape[1], faiss.METRIC_INNER_PRODUCT, faiss.IndexFlatIP(sample.shape[1])
    if shape.kind == "hnsw":
        trained = faiss.IndexHNSWSQ(width, faiss.ScalarQuantizer.QT_8bit, shape.links, inner)
        trained.hnsw.efConstruction = 200
    elif shape.kind == "rabitq":
        # One list, for only lists heed a mask. Its centre is given: k-means for inner products would make it unit
        # length, far from the mean, and the codes are of what is left beside the centre.
        flat.add(sample.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32))
        trained = faiss.IndexIVFRaBitQFastScan(flat, width, 1, inner, 32, True, shape.bits)
    else:
        trained = faiss.IndexIVFPQFastScan(flat, width, shape.lists, shape.parts, 4, inner)
        trained.cp.min_points_per_centroid = 1  # a word less on stderr; lists are few enough
    trained.train(sample)
    return trained


def _width(dim: int, shape: FaissShape) -> int:
    """Dimensions with zeros behind, so that all parts are equally long, and codes whole bytes."""
    part = {"hnsw": 1, "rabitq": 8}.get(shape.kind, shape.parts)
    return -(-dim // part) * part


# -- files --------------------------------------------------------------------------------------------------


def _opened(folder: Path, rows: RowBlocks) -> Parts | None:
    """The index in a folder; `UsageError` if it is of other rows than these, `EyespotError` if it is damaged."""
    with _whole(folder):
        layout = json_of(folder / LAYOUT)
        width, sizes, name = layout.pop("width"), list(map(int, layout.pop("rows"))), layout.pop("vectors", None)
        shape = FaissShape(**layout)
    if not sizes:
        return None
    refuse_others(rows, name, sum(sizes))
    faiss = _faiss()
    how = faiss.IO_FLAG_MMAP_IFC if shape.kind == "hnsw" else 0
    with _whole(folder):
        parts = [faiss.read_index(str(_file(folder, at)), how) for at in range(len(sizes))]
        if [part.ntotal for part in parts] != sizes:
            raise ValueError("its files are not of one index")
    return Parts(parts, shape, width)


@contextmanager
def _whole(folder: Path) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        detail = (str(error).splitlines() or ["unreadable"])[0]
        raise EyespotError(f"the index {folder} is damaged ({detail}); build it again with: eyespot tune") from error


def _file(folder: Path, at: int) -> Path:
    return folder / f"part-{at:05d}.faiss"
